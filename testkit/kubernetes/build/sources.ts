// SPDX-License-Identifier: Apache-2.0
/** The Go module that Kubernetes' programs are built from: programs/ with the version that its go.mod pins; with
 * KUBERNETES=1.37.2 in the environment a copy of it for that version. Layer: testkit. */
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'
import { hostArch } from '../../base/arch.ts'
import { cached, cacheRoot, keyOf } from '../../base/cache.ts'
import { go } from './go.ts'

export interface Sources {
  readonly folder: string
  /** undefined: the pinned one */
  readonly toolchain?: string
}

/** By the package: compiled files run from elsewhere. */
const PINNED = join(packageRoot(), 'testkit/kubernetes/build/programs')
const OTHER = process.env['KUBERNETES']

/** "1.34.4" */
export function kubernetesVersion(): string {
  return OTHER ?? required(pinnedSource('go.mod'), /^\tk8s\.io\/kubernetes v(\S+)$/m)
}

export function pinnedSource(name: string): string {
  return readFileSync(join(PINNED, name), 'utf8')
}

/** Changes with the version, the sources and the machine. */
export function programsKey(): string {
  return keyOf([hostArch(), ...['go.mod', 'go.sum', 'main.go'].map(pinnedSource), ...(OTHER === undefined ? [] : [OTHER])])
}

export async function kubernetesSources(): Promise<Sources> {
  if (OTHER === undefined) return { folder: PINNED }
  const folder = await cached(`kubernetes-sources-${OTHER}-${programsKey()}`, (half) => copyFor(OTHER, half))
  return { folder, toolchain: required(readFileSync(join(folder, 'go.mod'), 'utf8'), /^toolchain (\S+)$/m) }
}

/** The newest release that the module proxy has. */
export async function newestVersion(): Promise<string> {
  const releases = (await versionsOf('k8s.io/kubernetes')).filter((version) => /^v[\d.]+$/.test(version))
  return required(releases.at(-1) ?? '', /^v(.*)/)
}

async function copyFor(version: string, folder: string): Promise<void> {
  cpSync(PINNED, folder, { recursive: true })
  rmSync(join(folder, 'go.sum'))
  const answer: unknown = JSON.parse(await go(cacheRoot(), ['list', '-m', '-json', `k8s.io/kubernetes@v${version}`]))
  const own = readFileSync(String(Reflect.get(Object(answer), 'GoMod')), 'utf8')
  const minor = required(own, /^go (\d+\.\d+)/m)
  const toolchain = newestToolchain(await versionsOf('golang.org/toolchain'), minor)
  writeFileSync(join(folder, 'go.mod'), moduleFor(version, own, toolchain))
  await go(folder, ['mod', 'tidy'], toolchain)
}

/** In the order of versions. */
async function versionsOf(module: string): Promise<readonly string[]> {
  return (await go(cacheRoot(), ['list', '-m', '-versions', module])).trim().split(' ').slice(1)
}

/** "go1.26.11" of "1.26": the newest patch release for this machine. */
export function newestToolchain(versions: readonly string[], minor: string): string {
  const patches = versions.flatMap((version) => {
    const [, of, patch, arch] = /^v0\.0\.1-go(\d+\.\d+)\.(\d+)\.linux-(\w+)$/.exec(version) ?? []
    return of === minor && arch === hostArch() ? [Number(patch)] : []
  })
  if (patches.length === 0) throw new Error(`the module proxy has no Go ${minor}`)
  return `go${minor}.${Math.max(...patches)}`
}

/** A go.mod that requires this version, with what Kubernetes' own go.mod requires: its staging modules, which that
 * takes from its working tree, have the same version with 0 in front. */
export function moduleFor(version: string, own: string, toolchain: string): string {
  const staged = version.replace(/^1/, '0')
  const staging = [...own.matchAll(/^\t(k8s\.io\/\S+) => \.\/staging/gm)].map(([, name = '']) => name)
  const requirement = (name: string): string => `\t${name} ${required(own, new RegExp(String.raw`^\t${name} (\S+)`, 'm'))}`
  return [
    'module netplane/kubernetes',
    `go ${required(own, /^go (\S+)$/m)}`,
    `toolchain ${toolchain}`,
    `godebug ${required(own, /^godebug (\S+)$/m)}`,
    `require (\n\tk8s.io/kubernetes v${version}`,
    ...['github.com/spf13/cobra', 'go.etcd.io/etcd/server/v3'].map(requirement),
    ')',
    'replace (',
    ...staging.map((name) => `\t${name} => ${name} v${staged}`),
    ')',
    'tool k8s.io/kubernetes/test/images/agnhost\n',
  ].join('\n')
}

function required(text: string, pattern: RegExp): string {
  const [, found] = pattern.exec(text) ?? []
  if (found === undefined) throw new Error(`nothing like ${pattern.source} in ${JSON.stringify(text.slice(0, 200))}`)
  return found
}
