// SPDX-License-Identifier: Apache-2.0
/** Kubernetes' programs and tests, built from their Go modules once and kept in the cache directory. Layer: testkit. */
import { existsSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { cacheRoot, cached, keyOf } from '../../base/cache.ts'
import { runGo } from './go.ts'
import { kubernetesSources, kubernetesVersion, pinnedSource, programsKey } from './sources.ts'

/** What the one binary answers to. */
const NAMES = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-proxy', 'kube-scheduler', 'kubectl', 'kubelet'] as const
/** What runs in the pods of tests. */
const AGNHOST = 'k8s.io/kubernetes/test/images/agnhost'

/** The folder with the programs of {@link NAMES} and agnhost; built when this version of them is not there yet,
 * which takes minutes. */
export async function kubernetesPrograms(): Promise<string> {
  return await cached(programsFolder(), async (half) => {
    await build(['build', '-o', join(half, 'kubernetes'), '.'])
    for (const name of NAMES) symlinkSync('kubernetes', join(half, name))
    await buildGo(AGNHOST, join(half, 'agnhost'))
  })
}

/** The folder with the sources of a package of Kubernetes', and what else is there. */
export async function goSource(source: string): Promise<string> {
  return (await build(['list', '-f', '{{.Dir}}', source])).trim()
}

/** A program of Kubernetes' own, by its package. */
export async function buildGo(source: string, path: string): Promise<void> {
  await build(['build', '-o', path, source])
}

/** The same folder, when it is there. */
export function builtPrograms(): string | undefined {
  return inCache(programsFolder())
}

/** The program that runs Kubernetes' own end-to-end tests of the network; built as {@link kubernetesPrograms} are. */
export async function upstreamTests(): Promise<string> {
  return join(
    await cached(testsFolder(), async (half) => {
      await build(['test', '-c', '-o', join(half, 'e2e.test'), './upstream'])
    }),
    'e2e.test',
  )
}

/** The same program, when it is there. */
export function builtTests(): string | undefined {
  const folder = inCache(testsFolder())
  return folder === undefined ? undefined : join(folder, 'e2e.test')
}

function programsFolder(): string {
  return `kubernetes-${kubernetesVersion()}-${programsKey()}`
}

function testsFolder(): string {
  return `kubernetes-tests-${kubernetesVersion()}-${keyOf([programsKey(), pinnedSource('upstream/upstream_test.go')])}`
}

function inCache(name: string): string | undefined {
  const dir = join(cacheRoot(), name)
  return existsSync(dir) ? dir : undefined
}

async function build(args: readonly string[]): Promise<string> {
  const { folder, toolchain } = await kubernetesSources()
  return await runGo(folder, args, { stamps: stamps(), toolchain })
}

function stamps(): string {
  const version = kubernetesVersion()
  const [gitMajor = '', gitMinor = ''] = version.split('.')
  const facts = Object.entries({ gitVersion: `v${version}`, gitMajor, gitMinor })
  const modules = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version']
  return modules.flatMap((module) => facts.map(([name, value]) => `-X ${module}.${name}=${value}`)).join(' ')
}
