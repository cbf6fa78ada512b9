// SPDX-License-Identifier: Apache-2.0
/** Every packet case. Layer: test. */
import type { PacketCase } from './case.ts'
import { cases as asksBack } from './asks-back.ts'
import { cases as believed } from './believed.ts'
import { cases as brought } from './brought.ts'
import { cases as checksums } from './checksums.ts'
import { cases as choice } from './choice.ts'
import { cases as collisions } from './collisions.ts'
import { cases as damage } from './damage.ts'
import { cases as direct } from './direct.ts'
import { cases as extensions } from './extensions.ts'
import { cases as failsafes } from './failsafes.ts'
import { cases as flows } from './flows.ts'
import { cases as foreign } from './foreign.ts'
import { cases as oneWay } from './one-way.ts'
import { cases as fragments } from './fragments.ts'
import { cases as icmp } from './icmp.ts'
import { cases as lanes } from './lanes.ts'
import { cases as leaving } from './leaving.ts'
import { cases as lifetimes } from './lifetimes.ts'
import { cases as link } from './link.ts'
import { cases as martians } from './martians.ts'
import { cases as neighbours } from './neighbours.ts'
import { cases as nodePort } from './node-port.ts'
import { cases as outward } from './outward.ts'
import { cases as ownNode } from './own-node.ts'
import { cases as policy } from './policy.ts'
import { cases as policyFlows } from './policy-flows.ts'
import { cases as policyServices } from './policy-services.ts'
import { cases as policyStaged } from './policy-staged.ts'
import { cases as routed } from './routed.ts'
import { cases as sizes } from './sizes.ts'
import { cases as tags } from './tags.ts'
import { cases as takeover } from './takeover.ts'
import { cases as tcp } from './tcp.ts'
import { cases as telling } from './telling.ts'
import { cases as tunnelEnd } from './tunnel-end.ts'
import { cases as untracked } from './untracked.ts'

const cases: readonly PacketCase[] = [
  ...asksBack,
  ...believed,
  ...brought,
  ...checksums,
  ...choice,
  ...collisions,
  ...damage,
  ...direct,
  ...extensions,
  ...failsafes,
  ...flows,
  ...foreign,
  ...oneWay,
  ...fragments,
  ...icmp,
  ...lanes,
  ...leaving,
  ...lifetimes,
  ...link,
  ...martians,
  ...neighbours,
  ...nodePort,
  ...outward,
  ...ownNode,
  ...policy,
  ...policyFlows,
  ...policyServices,
  ...policyStaged,
  ...routed,
  ...sizes,
  ...tags,
  ...takeover,
  ...tcp,
  ...telling,
  ...tunnelEnd,
  ...untracked,
]

/** Those that programs for such a kernel are to pass. */
export function casesFor({ jiffies }: { readonly jiffies: boolean }): readonly PacketCase[] {
  return cases.filter(({ newer }) => newer !== true || jiffies)
}
