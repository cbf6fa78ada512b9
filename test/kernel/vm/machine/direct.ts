// SPDX-License-Identifier: Apache-2.0
/** Boots a kernel with the whole root as its initial memory disk and the serial console as the only way out: asks of a
 * kernel no more than those two. Layer: test. */
import { join } from 'node:path'
import { FACTS } from '../../../../testkit/base/arch.ts'
import { writeCpio } from '../root/cpio.ts'
import type { Entry } from '../root/entry.ts'
import { runGuest } from './guest.ts'
import type { GuestResult } from './guest.ts'
import type { Kernel } from '../kernel.ts'

export interface RunOptions {
  readonly kernel: Kernel
  readonly root: readonly Entry[]
  /** an empty directory for this run alone */
  readonly work: string
  readonly token: string
  readonly log: string
  readonly timeout: number
  /** megabytes */
  readonly memory: number
}

/** The processor's word counts for random numbers (a 5.3 kernel would wait for minutes before Node's first one);
 * mitigations cost time and protect nothing here; a panic ends the machine. */
const KERNEL_ARGS = ['random.trust_cpu=on', 'mitigations=off', 'nokaslr', 'panic=-1', 'loglevel=4', 'rdinit=/bin/sh']

export async function runDirect(options: RunOptions): Promise<GuestResult> {
  const { kernel, token } = options
  const facts = FACTS[kernel.arch]
  const initrd = join(options.work, 'root.cpio')
  writeCpio(options.root, initrd)
  const append = [`console=${facts.console},115200`, ...KERNEL_ARGS, '--', '/netplane/init', token, 'reboot'].join(' ')
  const args = [
    ...facts.machine,
    ...['-accel', 'tcg', '-smp', '1', '-m', String(options.memory)],
    ...['-nodefaults', '-no-user-config', '-no-reboot', '-display', 'none', '-monitor', 'none', '-serial', 'stdio'],
    ...['-device', 'virtio-rng-pci'],
    ...['-kernel', kernel.image, '-initrd', initrd, '-append', append],
  ]
  return runGuest({ program: facts.emulator, args, token, log: options.log, timeout: options.timeout })
}
