// SPDX-License-Identifier: Apache-2.0
/** The Go that Kubernetes and containerd are built with: a module of the Go project, fetched and checked by whatever
 * Go the machine has. Layer: testkit. */
import { chmodSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { hostArch } from '../../base/arch.ts'
import { cached, cacheRoot } from '../../base/cache.ts'
import { command } from '../../base/command.ts'

/** The newest patch release of the minor version in programs/go.mod. */
const PINNED = 'go1.24.13'
/** Two idle cores need half an hour at most. */
const BUILD_MS = 90 * 60_000

export interface BuildOptions {
  /** "-X" flags for the linker */
  readonly stamps?: string
  /** "go1.26.11" in the place of the pinned one */
  readonly toolchain?: string | undefined
}

/** Runs a `go` that builds or loads packages, in the folder of a module. */
export async function runGo(folder: string, args: readonly string[], options: BuildOptions = {}): Promise<string> {
  const [verb = '', ...rest] = args
  const flags = ['-trimpath', '-mod=readonly', '-buildvcs=false', '-ldflags', `-s -w ${options.stamps ?? ''}`]
  return await go(folder, [verb, ...flags, ...rest], options.toolchain)
}

/** Any `go`. Modules and objects stay too: a build that was cut short goes on where it was, and what two builds share
 * is compiled once. */
export async function go(folder: string, args: readonly string[], toolchain = PINNED): Promise<string> {
  const work = join(cacheRoot(), 'kubernetes-build')
  mkdirSync(work, { recursive: true })
  return await command(await goToolchain(toolchain), args, {
    cwd: folder,
    env: {
      CGO_ENABLED: '0',
      GOTOOLCHAIN: 'local',
      GOROOT: '',
      GOFLAGS: '-modcacherw',
      GOMODCACHE: join(work, 'modules'),
      GOCACHE: join(work, 'objects'),
    },
    timeout: BUILD_MS,
  })
}

/** The `go` to run, in the cache directory. Debian 12's own (1.19) can fetch it but cannot build with it. Throws
 * when there is no Go at all. */
async function goToolchain(version: string): Promise<string> {
  const arch = hostArch()
  const dir = await cached(`${version}-linux-${arch}`, async (half) => {
    const modules = join(half, 'modules')
    const answer: unknown = JSON.parse(
      await command('go', ['mod', 'download', '-json', `golang.org/toolchain@v0.0.1-${version}.linux-${arch}`], {
        cwd: half,
        env: { GOMODCACHE: modules, GOFLAGS: '-modcacherw', GOTOOLCHAIN: 'local' },
      }),
    )
    renameSync(textAt(answer, 'Dir'), join(half, 'go'))
    rmSync(modules, { recursive: true })
    // modules carry no permissions
    for (const folder of ['bin', 'pkg/tool']) makeExecutable(join(half, 'go', folder))
  })
  return join(dir, 'go/bin/go')
}

function makeExecutable(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) chmodSync(join(entry.parentPath, entry.name), 0o755)
}

function textAt(value: unknown, key: string): string {
  const found: unknown = typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined
  if (typeof found !== 'string') throw new Error(`go mod download: no ${key} in ${JSON.stringify(value)}`)
  return found
}
