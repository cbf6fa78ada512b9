// SPDX-License-Identifier: Apache-2.0
/** Answers of kernels that are not at hand. Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Answer, Features, TryProgram } from '#agent/dataplane/programs/kernel-features.ts'
import { objectFileName } from '#agent/dataplane/programs/objects.ts'
import { DECAP_L4_UDP, missingHelpers, missingHooks, probeFeatures } from '#agent/dataplane/programs/kernel-features.ts'
import { INCLUDE } from '../../../support/compiled.ts'

class Refused extends Error {
  readonly code: string

  constructor(code: string) {
    super(code)
    this.code = code
  }
}

/** Refuses calls of these helpers and these attach types as an old kernel does. */
function kernelWithout(helpers: readonly number[], attachTypes: readonly number[]): TryProgram {
  return ({ instructions, expectedAttachType }) => {
    const view = new DataView(instructions.buffer, instructions.byteOffset, instructions.byteLength)
    for (let at = 0; at < view.byteLength; at += 8) {
      if (view.getUint8(at) === 0x85 && helpers.includes(view.getInt32(at + 4, true))) throw new Refused('EINVAL')
    }
    if (expectedAttachType !== undefined && attachTypes.includes(expectedAttachType)) throw new Refused('EINVAL')
    return 0
  }
}

function machine(ticks: number, ring: Answer = 'yes') {
  return { makesRing: () => ring, hz: () => ticks, netns: () => '00000000000000ab' }
}

function answers(features: Features): Set<unknown> {
  return new Set(Object.entries(features).flatMap(([name, value]) => (name === 'hz' || name === 'netns' ? [] : [value])))
}

describe('probeFeatures', () => {
  test('a kernel with everything', () => {
    const features = probeFeatures(kernelWithout([], []), machine(250))
    expect(answers(features)).toEqual(new Set(['yes']))
    expect([missingHelpers(features), missingHooks(features).size]).toEqual([[], 0])
  })

  test('a kernel of the floor', () => {
    const features = probeFeatures(kernelWithout([118, 122, 152, 155, 160], [29, 30]), machine(1000, 'no'))
    expect(features).toMatchObject({
      redirect_peer: 'no',
      redirect_neigh: 'no',
      ktime_get_coarse_ns: 'no',
      recvmsg4: 'yes',
      getpeername6: 'no',
      ring_buffer: 'no',
      hz: 1000,
    })
    expect(missingHelpers(features)).toEqual([118, 122, 152, 155, 160, 130])
    expect([...missingHooks(features)]).toEqual(['getpeername4', 'getpeername6'])
  })

  test('a kernel without type information of its own has every helper, and is given the objects of the floor', () => {
    const features = probeFeatures(({ globalAt }) => {
      if (globalAt !== undefined) throw new Refused('EINVAL')
      return 0
    }, machine(250))
    expect(features).toMatchObject({ jiffies64: 'yes', redirect_peer: 'yes', global_functions: 'no' })
    expect(['tc', 'connect'].map((name) => objectFileName(name, features))).toEqual(['tc.floor.bpf.o', 'connect.bpf.o'])
  })

  test('what takes a tunnel’s marks off is found out by doing it: a flag is refused when it is used', () => {
    const [einval, flag] = [0xffffffea, 1 << 10]
    const runs = (known: number) =>
      probeFeatures(({ packet, instructions }) => {
        const flags = Buffer.from(instructions).readInt32LE(2 * 8 + 4)
        return packet !== undefined && (flags & ~known) !== 0 ? einval : 0
      }, machine(250)).decap_l4_udp
    expect([runs(flag | 1), runs(1), runs(0)]).toEqual(['yes', 'no', 'unknown'])
    expect(readFileSync(join(INCLUDE, 'base/compat.h'), 'utf8')).toContain(`#define NP_DECAP_L4_UDP 0x${DECAP_L4_UDP.toString(16)}\n`)
  })

  test('a kernel of before 6.0 refuses a tunnel key that names the source', () => {
    const runs = (sizes: readonly number[]) =>
      probeFeatures(({ packet, instructions }) => {
        const view = Buffer.from(instructions)
        const isKey = view.readInt32LE(view.length - 2 * 8 + 4) === 21
        return packet !== undefined && isKey && !sizes.includes(view.readInt32LE(view.length - 4 * 8 + 4)) ? 0xffffffea : 0
      }, machine(250)).tunnel_source
    expect([runs([28, 44]), runs([28]), runs([])]).toEqual(['yes', 'no', 'unknown'])
  })

  test('a process that may load no program cannot probe, and does without the features', () => {
    const features = probeFeatures(
      () => {
        throw new Refused('EPERM')
      },
      machine(100, 'unknown'),
    )
    expect(answers(features)).toEqual(new Set(['unknown']))
    expect(missingHelpers(features)).toEqual([118, 122, 152, 155, 160, 130])
  })
})
