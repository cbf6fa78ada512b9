// SPDX-License-Identifier: Apache-2.0
/** What the running kernel has of what our objects can use: the agent's own probes, as tests need them. Layer: test. */
import { existsSync, readFileSync } from 'node:fs'
import { missingHelpers, missingHooks, probeFeatures } from '#agent/dataplane/programs/kernel-features.ts'
import { isFloor } from '#agent/dataplane/programs/objects.ts'
import { libbpfVersion } from '#native'
import { takesMarks } from '../../testkit/packets/mark.ts'
import type { Features } from '../../testkit/packets/runner.ts'
import { kernelRelease } from '../../testkit/packets/runner.ts'

export interface KernelFacts {
  readonly features: Features
  /** ids of helpers the kernel lacks */
  readonly missingHelpers: readonly number[]
  /** connect-time programs the kernel has no hook for */
  readonly missingHooks: ReadonlySet<string>
  readonly kernelBtf: boolean
  /** of test runs: mark.ts */
  readonly marks: boolean
  /** one line for the report */
  readonly text: string
}

export const KERNEL_BTF = '/sys/kernel/btf'

export function kernelFacts(): KernelFacts {
  const probed = probeFeatures()
  const kernelBtf = existsSync(`${KERNEL_BTF}/vmlinux`)
  const marks = takesMarks()
  const words = Object.entries({ ...probed, kernelBtf, marks, jit: jit(), libbpf: libbpfVersion() }).map(
    ([name, value]) => `${name}=${String(value)}`,
  )
  return {
    features: {
      redirectPeer: probed.redirect_peer === 'yes',
      redirectNeigh: probed.redirect_neigh === 'yes',
      // without the other these objects are as for kernels that have neither
      jiffies: probed.jiffies64 === 'yes' && !isFloor(probed),
      netnsCookies: probed.get_netns_cookie === 'yes',
      coarseClock: probed.ktime_get_coarse_ns === 'yes',
      decapUdp: probed.decap_l4_udp === 'yes',
    },
    missingHelpers: missingHelpers(probed),
    missingHooks: missingHooks(probed),
    kernelBtf,
    marks,
    text: [kernelRelease(), process.arch, ...words].join(' '),
  }
}

function jit(): string {
  const path = '/proc/sys/net/core/bpf_jit_enable'
  return existsSync(path) ? readFileSync(path, 'utf8').trim() : 'absent'
}
