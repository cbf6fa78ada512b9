// SPDX-License-Identifier: Apache-2.0
/** etcd, kube-apiserver and kube-proxy, built from their Go modules once and kept in the cache directory. Layer: test. */
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '#lib/base/package.ts'
import { hostArch } from '../kernel/vm/arch.ts'
import { cacheRoot, cached, keyOf } from '../kernel/vm/cache.ts'
import { command } from '../kernel/vm/command.ts'
import { goToolchain } from './go.ts'

const NAMES = ['etcd', 'kube-apiserver', 'kube-proxy'] as const
/** Two idle cores need a quarter of an hour at most. */
const BUILD_MS = 60 * 60_000

/** The folder with the programs of {@link NAMES}; built when this version of them is not there yet, which takes minutes. */
export async function kubernetesPrograms(): Promise<string> {
  return await cached(cacheName(), async (half) => {
    // outside the half-made result: a build that was cut short goes on where it was
    const work = join(cacheRoot(), 'kubernetes-build')
    mkdirSync(work, { recursive: true })
    await build(join(half, 'kubernetes'), work)
    for (const name of NAMES) symlinkSync('kubernetes', join(half, name))
    rmSync(work, { recursive: true })
  })
}

/** The same folder, when it is there. */
export function builtPrograms(): string | undefined {
  const dir = join(cacheRoot(), cacheName())
  return existsSync(dir) ? dir : undefined
}

async function build(output: string, work: string): Promise<void> {
  const version = versionOf(readSource('go.mod'))
  const facts = { gitVersion: `v${version}`, gitMajor: version.split('.')[0] ?? '', gitMinor: version.split('.')[1] ?? '' }
  const stamps = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'].flatMap((module) =>
    Object.entries(facts).map(([name, value]) => `-X ${module}.${name}=${value}`),
  )
  await command(
    await goToolchain(),
    ['build', '-trimpath', '-mod=readonly', '-buildvcs=false', '-ldflags', ['-s', '-w', ...stamps].join(' '), '-o', output, '.'],
    {
      cwd: sourceFolder(),
      env: {
        CGO_ENABLED: '0',
        GOTOOLCHAIN: 'local',
        GOROOT: '',
        GOFLAGS: '-modcacherw',
        GOMODCACHE: join(work, 'modules'),
        GOCACHE: join(work, 'objects'),
      },
      timeout: BUILD_MS,
    },
  )
}

/** Changes with the version, the sources and the machine. */
function cacheName(): string {
  const mod = readSource('go.mod')
  return `kubernetes-${versionOf(mod)}-${keyOf([hostArch(), mod, readSource('go.sum'), readSource('main.go')])}`
}

function versionOf(mod: string): string {
  const version = /^\tk8s\.io\/kubernetes v(\S+)$/m.exec(mod)?.[1]
  if (version === undefined) throw new Error('programs/go.mod requires no k8s.io/kubernetes')
  return version
}

function readSource(name: string): string {
  return readFileSync(join(sourceFolder(), name), 'utf8')
}

/** By the package: compiled files run from elsewhere. */
function sourceFolder(): string {
  return join(packageRoot(), 'test/kubernetes/programs')
}
