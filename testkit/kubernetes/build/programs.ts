// SPDX-License-Identifier: Apache-2.0
/** Kubernetes' programs and tests, built from their Go modules once and kept in the cache directory. Layer: testkit. */
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'
import { hostArch } from '../../base/arch.ts'
import { cacheRoot, cached, keyOf } from '../../base/cache.ts'
import { runGo } from './go.ts'

/** What the one binary answers to. */
const NAMES = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-proxy', 'kube-scheduler', 'kubectl', 'kubelet'] as const
/** What runs in the pods of tests. */
const AGNHOST = 'k8s.io/kubernetes/test/images/agnhost'

/** The folder with the programs of {@link NAMES} and agnhost; built when this version of them is not there yet,
 * which takes minutes. */
export async function kubernetesPrograms(): Promise<string> {
  return await cached(programsFolder(), async (half) => {
    await go(['build', '-o', join(half, 'kubernetes'), '.'])
    for (const name of NAMES) symlinkSync('kubernetes', join(half, name))
    await buildGo(AGNHOST, join(half, 'agnhost'))
  })
}

/** The folder with the sources of a package of Kubernetes', and what else is there. */
export async function goSource(source: string): Promise<string> {
  return (await go(['list', '-f', '{{.Dir}}', source])).trim()
}

/** A program of Kubernetes' own, by its package. */
export async function buildGo(source: string, path: string): Promise<void> {
  await go(['build', '-o', path, source])
}

/** The same folder, when it is there. */
export function builtPrograms(): string | undefined {
  return inCache(programsFolder())
}

/** The program that runs Kubernetes' own end-to-end tests of the network; built as {@link kubernetesPrograms} are. */
export async function upstreamTests(): Promise<string> {
  return join(
    await cached(testsFolder(), async (half) => {
      await go(['test', '-c', '-o', join(half, 'e2e.test'), './upstream'])
    }),
    'e2e.test',
  )
}

/** The same program, when it is there. */
export function builtTests(): string | undefined {
  const folder = inCache(testsFolder())
  return folder === undefined ? undefined : join(folder, 'e2e.test')
}

/** Changes with the version, the sources and the machine. */
export function programsKey(): string {
  return keyOf([hostArch(), ...['go.mod', 'go.sum', 'main.go'].map(readSource)])
}

function programsFolder(): string {
  return `kubernetes-${version()}-${programsKey()}`
}

function testsFolder(): string {
  return `kubernetes-tests-${version()}-${keyOf([programsKey(), readSource('upstream/upstream_test.go')])}`
}

function inCache(name: string): string | undefined {
  const dir = join(cacheRoot(), name)
  return existsSync(dir) ? dir : undefined
}

async function go(args: readonly string[]): Promise<string> {
  return await runGo(sourceFolder(), args, stamps())
}

function stamps(): string {
  const [gitMajor = '', gitMinor = ''] = version().split('.')
  const facts = Object.entries({ gitVersion: `v${version()}`, gitMajor, gitMinor })
  const modules = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version']
  return modules.flatMap((module) => facts.map(([name, value]) => `-X ${module}.${name}=${value}`)).join(' ')
}

function version(): string {
  const found = /^\tk8s\.io\/kubernetes v(\S+)$/m.exec(readSource('go.mod'))?.[1]
  if (found === undefined) throw new Error('programs/go.mod requires no k8s.io/kubernetes')
  return found
}

function readSource(name: string): string {
  return readFileSync(join(sourceFolder(), name), 'utf8')
}

/** By the package: compiled files run from elsewhere. */
function sourceFolder(): string {
  return join(packageRoot(), 'testkit/kubernetes/build/programs')
}
