// SPDX-License-Identifier: Apache-2.0
/** Boots a kernel by virtme-ng, with the root as a directory shared with the guest: the second way to the same
 * payload, by the tool a kernel developer is likely to have. Layer: test. */
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cached, keyOf } from '../../../../testkit/base/cache.ts'
import { command } from '../../../../testkit/base/command.ts'
import type { RunOptions } from './direct.ts'
import { withParents } from '../root/entry.ts'
import type { Entry } from '../root/entry.ts'
import { runGuest } from './guest.ts'
import type { GuestResult } from './guest.ts'
import type { Kernel } from '../kernel.ts'
import { writeTree } from '../root/tree.ts'

const REQUIREMENTS = join(import.meta.dirname, 'requirements.txt')

export async function runVirtme(options: RunOptions): Promise<GuestResult> {
  const { kernel, token } = options
  const tool = await installed()
  const tree = join(options.work, 'tree')
  mkdirSync(tree)
  writeTree(withParents([...options.root, ...ownEntries(kernel)]), tree)
  const args = [
    join(tool, 'bin', 'vng'),
    ...['--verbose', '--run', join(tree, 'boot', `vmlinuz-${kernel.release}`), '--root', tree],
    ...['--disable-kvm', '--disable-microvm', '--disable-monitor', '--force-9p'],
    ...['--cpus', '1', '--memory', `${options.memory}M`, '--user', 'root'],
    ...['--append', 'mitigations=off', '--append', 'random.trust_cpu=on'],
    ...['--exec', `sh /netplane/init ${token} return`],
  ]
  const env = {
    PYTHONPATH: tool,
    PYTHONDONTWRITEBYTECODE: '1',
    PATH: `${join(tool, 'bin')}:${process.env['PATH'] ?? ''}`,
    // What it leaves behind when it is ended goes with the run.
    HOME: options.work,
    TMPDIR: options.work,
  }
  return runGuest({ program: 'python3', args, env, token, log: options.log, timeout: options.timeout })
}

/** Its initial memory disk is made from the modules beside the kernel it is given. */
function ownEntries(kernel: Kernel): Entry[] {
  const release = kernel.release
  if (release === undefined) throw new Error(`${kernel.name}: virtme-ng needs to know the kernel's release`)
  return [
    { kind: 'bytes', path: 'etc/fstab', content: new Uint8Array(), mode: 0o644 },
    { kind: 'file', path: `boot/vmlinuz-${release}`, source: kernel.image, mode: 0o644 },
    ...kernel.modules.map((module): Entry => ({
      kind: 'bytes',
      path: `lib/modules/${release}/kernel/${module.name}.ko`,
      content: module.bytes,
      mode: 0o644,
    })),
  ]
}

/** A directory to put on Python's path; the versions and their contents are pinned in requirements.txt. */
function installed(): Promise<string> {
  const key = keyOf(readFileSync(REQUIREMENTS, 'utf8'))
  // Wheels that run anywhere: the pins hold for every Python.
  const anywhere = ['--platform', 'any', '--only-binary=:all:', '--require-hashes', '--no-deps']
  return cached(`virtme-ng-${key}`, async (dir) => {
    await command('python3', ['-m', 'pip', 'install', '--quiet', ...anywhere, '--target', dir, '--requirement', REQUIREMENTS])
  })
}
