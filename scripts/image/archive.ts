// SPDX-License-Identifier: Apache-2.0
/** Folders as container images in one file, as `docker save` writes it: what any runtime imports. Layer: scripts. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { arch } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'

export interface Image {
  /** its root file system; the same folder is one layer in all images of it */
  readonly root: string
  /** "registry/name:tag" */
  readonly tags: readonly string[]
  readonly entrypoint: readonly string[]
  readonly command: readonly string[]
}

const run = promisify(execFile)
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
/** The same files make the same archive. */
const EPOCH = '2020-01-01T00:00:00Z'

/** `work`: a new folder for what goes into it. */
export async function writeArchive(path: string, work: string, images: readonly Image[]): Promise<void> {
  mkdirSync(work)
  const layers = new Map<string, string>()
  for (const root of new Set(images.map((image) => image.root))) layers.set(root, await writeLayer(work, root))
  const manifest = images.map((image) => {
    const layer = layers.get(image.root) ?? ''
    const config = JSON.stringify(configOf(image, layer))
    const name = `${createHash('sha256').update(config).digest('hex')}.json`
    writeFileSync(join(work, name), config)
    return { Config: name, RepoTags: image.tags, Layers: [`${layer}.tar`] }
  })
  writeFileSync(join(work, 'manifest.json'), JSON.stringify(manifest))
  await run('tar', [...SAME, '-C', work, '-cf', path, '.'])
}

const SAME = ['--sort=name', `--mtime=${EPOCH}`, '--owner=0', '--group=0', '--numeric-owner']

/** Name of the layer: its digest. */
async function writeLayer(work: string, root: string): Promise<string> {
  const half = join(work, 'half.tar')
  await run('tar', [...SAME, '-C', root, '-cf', half, '.'])
  const hash = createHash('sha256')
  await pipeline(createReadStream(half), hash)
  const digest = hash.digest('hex')
  renameSync(half, join(work, `${digest}.tar`))
  return digest
}

function configOf(image: Image, layer: string): object {
  return {
    architecture: arch() === 'x64' ? 'amd64' : arch(),
    os: 'linux',
    created: EPOCH,
    config: { Env: [`PATH=${PATH}`], Entrypoint: image.entrypoint, Cmd: image.command, WorkingDir: '/' },
    rootfs: { type: 'layers', diff_ids: [`sha256:${layer}`] },
  }
}
