// SPDX-License-Identifier: Apache-2.0
/** The images of an Installation, against every object that is made of it. Layer: test. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { dump, loadAll } from 'js-yaml'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { VARIANTS } from '#lib/kube/schema/installation.ts'
import { renderCleanup } from '#lib/render/cleanup-pod.ts'
import { imageOf } from '#lib/render/image.ts'
import { renderInstallation } from '#lib/render/render.ts'
import { readInstallation } from '#operator/run/desired.ts'
import { readArgs } from '../../../cli/args.ts'
import { imagesCommand } from '../../../cli/install/images.ts'

const version = packageVersion()
const deploy = (file: string): string => new URL(`../../../deploy/operator/${file}`, import.meta.url).pathname

let folder = ''

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-images-'))
})

afterAll(() => {
  rmSync(folder, { recursive: true })
})

function images(...flags: readonly string[]): readonly string[] {
  const order = readArgs(['install', 'images', ...flags])
  if (order.kind !== 'install images') throw new Error(order.kind)
  return imagesCommand(order).text.split('\n').slice(0, -1)
}

/** Whatever is called an image in a text, be it of a container or not. */
function grepped(...texts: readonly string[]): readonly string[] {
  return [...new Set(texts.flatMap((text) => [...text.matchAll(/\bimage: ['"]?([^\s'"]+)/g)].map(([, image = '']) => image)))].sort()
}

/** All that the operator makes of the Installation in a file. */
function rendered(file: string): string {
  const installation = asApiObject(loadAll(readFileSync(file, 'utf8'))[0])
  const { computed } = readInstallation(installation, { provider: 'Generic', hasKubeProxy: false, installed: undefined })
  const input = { namespace: 'netplane-system', image: imageOf(computed, version), computed }
  return dump([...renderInstallation({ ...input, endpoint: undefined }), ...renderCleanup(input)])
}

test.each(['custom-resources.yaml', 'custom-resources-enterprise.yaml'])('%s: those of every object, and no other', (file) => {
  const all = grepped(readFileSync(deploy('netplane-operator.yaml'), 'utf8'), rendered(deploy(file)))
  expect(all.length).toBeGreaterThan(0)
  expect(images('-f', deploy(file))).toEqual(all)
})

test.each(VARIANTS)('flags say the same as a file, for %s', (variant) => {
  const file = join(folder, `${variant}.yaml`)
  const spec = { variant, registry: 'registry.example.com:5000', imagePath: 'mirror/net', netplaneNetwork: { linuxDataplane: 'BPF' } }
  writeFileSync(file, dump({ apiVersion: 'operator.netplane.io/v1', kind: 'Installation', metadata: { name: 'default' }, spec }))
  const named = images('--registry', spec.registry, '--image-path', spec.imagePath, '--variant', variant)
  expect(named).toEqual(images('--file', file))
  expect(named).toContain(`registry.example.com:5000/mirror/net/netplane:${version}`)
  expect(grepped(rendered(file)).filter((image) => !named.includes(image))).toEqual([])
})

test('without flags: those of deploy/operator', () => {
  expect(images()).toEqual([`netplane:${version}`])
})

test.each([
  ['a: 1', 'there is no Installation of operator.netplane.io in it'],
  ['a: [', 'unexpected end'],
  ['apiVersion: operator.netplane.io/v1\nkind: Installation\nspec: {variant: Big}', 'spec.variant: must be'],
  [
    'apiVersion: operator.netplane.io/v1\nkind: Installation\n---\napiVersion: operator.netplane.io/v1\nkind: Installation',
    '2 Installations',
  ],
])('a file with %j is refused: %s', (text, message) => {
  const file = join(folder, 'wrong.yaml')
  writeFileSync(file, text)
  expect(() => images('-f', file)).toThrow(message)
})

test.each([
  ['install images -f x --registry y', '--registry: is in the file'],
  ['install images --variant Big', '--variant: must be Netplane or NetplaneEnterprise; it is "Big"'],
  ['install images --registry http://x', '--registry: must be a host, with a port or without; it is "http://x"'],
  ['install images --image-path A', '--image-path: must be a path of an image; it is "A"'],
  ['install images more', 'install images: "more" is too much'],
  ['install endpoint --platform GKE', '--platform: "GKE" is none of Generic, KOPS, OpenShift, AKS, EKS, MKE, RKE2'],
  ['install', 'command: "install" is none'],
])('"%s" has a wrong argument: %s', (line, message) => {
  // before anything is done: exit code 2
  expect(() => readArgs(line.split(' '))).toThrow(message)
})
