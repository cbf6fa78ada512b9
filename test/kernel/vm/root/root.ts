// SPDX-License-Identifier: Apache-2.0
/** The guest's whole root: a shell, Node with its libraries, modules, and what is to be tested. Layer: test. */
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { withParents } from './entry.ts'
import type { Entry } from './entry.ts'
import { neededLibraries } from './libraries.ts'
import type { Parts } from '../kernel.ts'
import type { Module } from './modules.ts'
import type { Userland } from './userland.ts'

export interface RootOptions {
  readonly userland: Userland
  /** the payload as one file of JavaScript */
  readonly payload: string
  /** where the *.bpf.o lie */
  readonly objectsDir: string
  readonly modules: readonly Module[]
  readonly parts: Parts
  /** this machine's tools; undefined: the userland's, and no others */
  readonly tools: ReadonlyMap<string, string> | undefined
  /** what its work needs besides */
  readonly more: readonly Entry[]
}

const APPLETS = ['sh', 'mount', 'mkdir', 'ln', 'insmod', 'dmesg', 'cat', 'tail', 'sleep', 'reboot', 'env', 'rm']
const EMPTY = ['proc', 'sys', 'tmp', 'run', 'etc', 'var']
/** For kernels without devtmpfs. */
const DEVICES = [
  { path: 'dev/console', major: 5, minor: 1 },
  { path: 'dev/tty', major: 5, minor: 0 },
  { path: 'dev/null', major: 1, minor: 3 },
  { path: 'dev/zero', major: 1, minor: 5 },
  { path: 'dev/random', major: 1, minor: 8 },
  { path: 'dev/urandom', major: 1, minor: 9 },
  { path: 'dev/kmsg', major: 1, minor: 11 },
]

export async function rootEntries(options: RootOptions): Promise<Entry[]> {
  const { userland, modules, parts, more } = options
  const own = [
    ['ip', userland.ip],
    ['nft', userland.nft],
  ] as const
  const tools = options.tools ?? new Map(own)
  const { loader, libraries } = await neededLibraries([userland.node, userland.addon, ...tools.values()], userland.libraryDirs)
  const loaderFile = libraries.get(basename(loader)) ?? ''
  return withParents([
    ...EMPTY.map((path): Entry => ({ kind: 'directory', path })),
    ...DEVICES.map((device): Entry => ({ kind: 'device', ...device })),
    file('bin/busybox', userland.busybox),
    ...[...tools].map(([name, source]) => file(`bin/${name}`, source)),
    { kind: 'bytes', path: 'netplane/parts', content: Buffer.from(parts), mode: 0o644 },
    ...APPLETS.map((name): Entry => ({ kind: 'link', path: `bin/${name}`, target: 'busybox' })),
    file('netplane/init', join(import.meta.dirname, 'guest-init.sh')),
    file('netplane/payload.mjs', options.payload),
    file('netplane/node', userland.node),
    file('netplane/build/Release/netplane_native.node', userland.addon),
    file(loader.slice(1), loaderFile),
    ...[...libraries].map(([name, source]): Entry => file(`lib/${name}`, source)),
    ...objects(options.objectsDir),
    ...more,
    ...modules.map((module, index): Entry => moduleEntry(module, index)),
  ])
}

function file(path: string, source: string): Entry {
  return { kind: 'file', path, source, mode: 0o755 }
}

function objects(dir: string): Entry[] {
  const names = readdirSync(dir)
    .filter((name) => name.endsWith('.bpf.o'))
    .sort()
  return names.map((name): Entry => file(`netplane/bpf/${name}`, join(dir, name)))
}

function moduleEntry(module: Module, index: number): Entry {
  const path = `netplane/modules/${String(index).padStart(3, '0')}-${module.name}.ko`
  return { kind: 'bytes', path, content: module.bytes, mode: 0o644 }
}
