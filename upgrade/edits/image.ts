// SPDX-License-Identifier: Apache-2.0
/** Names of images of older versions. Layer: upgrade (pure). */

/** Where the product's images are published. */
const PUBLISHED = /^(docker\.io|index\.docker\.io|quay\.io)\//

/** Without tag and digest, and without the registry where it is one that has the product's images: those change with
 * every version. */
export function repositoryOf(image: string): string {
  const name = image.replace(/@.*$/, '').replace(/:[^:/]*$/, '')
  return name.replace(PUBLISHED, '')
}

export interface Mirror {
  /** "registry.example.com:5000"; empty: the image names none */
  readonly registry: string
  /** below it: "mirror/team"; empty: at its root */
  readonly imagePath: string
}

/** Where a copy of an image of ours is: `own` is its repository in the manifest. Undefined: it is another image. */
export function mirrorOf(image: string, own: string): Mirror | undefined {
  const repository = repositoryOf(image)
  const [, short = own] = /\/([^/]+)$/.exec(own) ?? []
  const path = [own, short].flatMap((name) => (repository.endsWith(`/${name}`) ? [repository.slice(0, -name.length - 1)] : []))[0]
  if (path === undefined) return undefined
  const [host = '', ...rest] = path.split('/')
  const hasHost = /[.:]/.test(host) || host === 'localhost'
  return hasHost ? { registry: host, imagePath: rest.join('/') } : { registry: '', imagePath: path }
}
