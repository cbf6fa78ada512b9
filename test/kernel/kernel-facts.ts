// SPDX-License-Identifier: Apache-2.0
/** What the running kernel has of what our objects can use, found by trying. Layer: test. */
import { existsSync, readFileSync } from 'node:fs'
import { BpfMap, BpfProgram, libbpfVersion } from '#native'
import type { Features } from './packet-runner.ts'
import { HELPERS, kernelRelease } from './packet-runner.ts'

const SCHED_CLS = 3
const CGROUP_SOCK_ADDR = 18
const RINGBUF = 27

/** enum bpf_attach_type of the connect-time hooks; the programs bear these names. */
const HOOKS = { connect4: 10, connect6: 11, sendmsg4: 14, sendmsg6: 15, recvmsg4: 19, recvmsg6: 20, getpeername4: 29, getpeername6: 30 }

export interface KernelFacts {
  readonly features: Features
  /** ids of helpers the kernel lacks */
  readonly missingHelpers: readonly number[]
  /** connect-time programs the kernel has no hook for */
  readonly missingHooks: readonly string[]
  /** one line for the report */
  readonly text: string
}

export function kernelFacts(): KernelFacts {
  const has = (helper: number): boolean => loads(SCHED_CLS, callOf(helper))
  const features = { redirectPeer: has(HELPERS.redirectPeer), redirectNeigh: has(HELPERS.redirectNeigh), coarseClock: has(HELPERS.coarseClock) }
  const missingHooks = Object.entries(HOOKS).flatMap(([name, hook]) => (loads(CGROUP_SOCK_ADDR, allow(), hook) ? [] : [name]))
  const present = {
    ...features,
    hooks: missingHooks.length === 0 ? 'all' : `all but ${missingHooks.join(' ')}`,
    ringBuffer: creates(RINGBUF),
    kernelBtf: existsSync('/sys/kernel/btf/vmlinux'),
    jit: sysctl('net/core/bpf_jit_enable'),
    libbpf: libbpfVersion(),
  }
  const words = Object.entries(present).map(([name, value]) => `${name}=${String(value)}`)
  return {
    features,
    missingHelpers: Object.values(HELPERS).filter((helper) => !has(helper)),
    missingHooks,
    text: `${kernelRelease()} ${process.arch} ${words.join(' ')}`,
  }
}

/** Arguments that every helper of ours takes: an interface, then nothing. */
function callOf(helper: number): Uint8Array {
  const zeros = [2, 3, 4].map((register) => instruction(0xb7, register, 0))
  return Buffer.concat([instruction(0xb7, 1, 1), ...zeros, instruction(0x85, 0, helper), allow()])
}

/** r0 = 1; exit */
function allow(): Buffer {
  return Buffer.concat([instruction(0xb7, 0, 1), instruction(0x95, 0, 0)])
}

function instruction(code: number, destination: number, immediate: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt8(code, 0)
  bytes.writeUInt8(destination, 1)
  bytes.writeInt32LE(immediate, 4)
  return bytes
}

function loads(type: number, instructions: Uint8Array, expectedAttachType?: number): boolean {
  try {
    BpfProgram.load({ type, instructions, license: 'GPL', ...(expectedAttachType === undefined ? {} : { expectedAttachType }) }).close()
    return true
  } catch {
    return false
  }
}

function creates(type: number): boolean {
  try {
    BpfMap.create({ name: 'np_probe', type, keySize: 0, valueSize: 0, maxEntries: 4096 }).close()
    return true
  } catch {
    return false
  }
}

function sysctl(path: string): string {
  return existsSync(`/proc/sys/${path}`) ? readFileSync(`/proc/sys/${path}`, 'utf8').trim() : 'absent'
}
