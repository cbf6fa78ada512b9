// SPDX-License-Identifier: Apache-2.0
/** What the agent finds out about its machine before it touches anything. Layer: agent. */
import { existsSync, readFileSync } from 'node:fs'
import { release, version } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { packageRoot } from '#lib/base/os/package.ts'
import { kernelVersion, OLDEST_KERNEL } from '#lib/base/os/oldest-kernel.ts'

/** Why programs that would be loaded must not run on this kernel; undefined: they may. */
export function unsafeKernel(kernel: string = release(), realtime = realtimeKernel(kernel)): string | undefined {
  if (!preemptsPackets(kernel, realtime)) return undefined
  return `${kernel} is a real-time kernel without ${PACKET_LOCK}: there one packet interrupts another, and both would be judged in the same memory`
}

const PACKET_LOCK = 'CONFIG_PREEMPT_RT_NEEDS_BH_LOCK'

export interface RealtimeKernel {
  /** PREEMPT_RT */
  readonly is: boolean
  /** its configuration, where it can be read */
  readonly config: string | undefined
}

/** Until 6.18 a CPU of a real-time kernel was done with one packet before it took the next; since then that is an
 * option, off by default. */
function preemptsPackets(kernel: string, { is, config }: RealtimeKernel): boolean {
  if (!is) return false
  if (config?.includes(`${PACKET_LOCK}=y`) === true) return false
  return config?.includes(PACKET_LOCK) === true || (kernelVersion(kernel) ?? Infinity) >= 6018
}

/** By `uname -v`; the file is there with the patches for older kernels only. */
export function isRealtime(text: string = version(), file = textOf('/sys/kernel/realtime')): boolean {
  return /\bPREEMPT[ _]RT\b/.test(text) || file?.trim() === '1'
}

function realtimeKernel(kernel: string): RealtimeKernel {
  const files = ['/proc/config.gz', `/boot/config-${kernel}`, `/usr/lib/modules/${kernel}/config`]
  return { is: isRealtime(), config: files.map(textOf).find((text) => text !== undefined) }
}

function textOf(path: string): string | undefined {
  if (!existsSync(path)) return undefined
  const bytes = readFileSync(path)
  return (path.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('latin1')
}

/** The message for a kernel that is too old and has refused our programs. */
export function tooOld(refusal: string, kernel: string = release()): string {
  return `${kernel} is older than what Netplane needs (${OLDEST_KERNEL}), and refuses its programs: ${refusal}`
}

/** Whether programs and maps count as locked memory. */
export function countsMemlock(kernel: string = release()): boolean {
  const version = kernelVersion(kernel)
  return version !== undefined && version < 5011
}

/** Where the build puts the BPF objects. */
export function packageObjects(): string {
  return join(packageRoot(), 'bpf')
}
