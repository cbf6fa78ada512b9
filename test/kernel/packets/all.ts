// SPDX-License-Identifier: Apache-2.0
/** Every packet case. Layer: test. */
import type { PacketCase } from '../../../testkit/packets/case.ts'
import { cases as accounts } from './accounts.ts'
import { cases as asksBack } from './asks-back.ts'
import { cases as believed } from './sources/believed.ts'
import { cases as brought } from './brought.ts'
import { cases as checksums } from './headers/checksums.ts'
import { cases as choice } from './services/choice.ts'
import { cases as collisions } from './services/collisions.ts'
import { cases as cutting } from './headers/cutting.ts'
import { cases as damage } from './headers/damage.ts'
import { cases as direct } from './services/direct.ts'
import { cases as egress } from './policy/egress.ts'
import { cases as echo } from './icmp/echo.ts'
import { cases as ecn } from './headers/ecn.ts'
import { cases as extensions } from './headers/extensions.ts'
import { cases as failsafes } from './policy/failsafes.ts'
import { cases as flows } from './flows.ts'
import { cases as foreign } from './services/foreign.ts'
import { cases as older } from './policy/older.ts'
import { cases as oneWay } from './sources/one-way.ts'
import { cases as fragments } from './headers/fragments.ts'
import { cases as icmp } from './icmp/icmp.ts'
import { cases as itself } from './policy/itself.ts'
import { cases as lanes } from './lanes.ts'
import { cases as leaving } from './leaving.ts'
import { cases as lifetimes } from './lifetimes.ts'
import { cases as link } from './icmp/link.ts'
import { cases as martians } from './sources/martians.ts'
import { cases as neighbours } from './icmp/neighbours.ts'
import { cases as nodePort } from './services/node-port.ts'
import { cases as otherNode } from './icmp/other-node.ts'
import { cases as outward } from './sources/outward.ts'
import { cases as ownBackends } from './icmp/own-backends.ts'
import { cases as ownNode } from './policy/own-node.ts'
import { cases as ownPrefixes } from './sources/own-prefixes.ts'
import { cases as ownPorts } from './services/own-ports.ts'
import { cases as path } from './icmp/path.ts'
import { cases as policy } from './policy/rules.ts'
import { cases as policyFlows } from './policy/flows.ts'
import { cases as policyServices } from './policy/services.ts'
import { cases as policyStaged } from './policy/staged.ts'
import { cases as routed } from './routed.ts'
import { cases as sizes } from './headers/sizes.ts'
import { cases as tags } from './headers/tags.ts'
import { cases as standard } from './services/standard.ts'
import { cases as takeover } from './services/takeover.ts'
import { cases as takeoverTunnel } from './services/takeover-tunnel.ts'
import { cases as tcp } from './tcp.ts'
import { cases as telling } from './icmp/telling.ts'
import { cases as tunnelEnd } from './sources/tunnel-end.ts'
import { cases as untracked } from './untracked.ts'
import { cases as vteps } from './headers/vteps.ts'

const cases: readonly PacketCase[] = [
  ...accounts,
  ...asksBack,
  ...believed,
  ...brought,
  ...checksums,
  ...choice,
  ...collisions,
  ...cutting,
  ...damage,
  ...direct,
  ...egress,
  ...echo,
  ...ecn,
  ...extensions,
  ...failsafes,
  ...flows,
  ...foreign,
  ...older,
  ...oneWay,
  ...fragments,
  ...icmp,
  ...itself,
  ...lanes,
  ...leaving,
  ...lifetimes,
  ...link,
  ...martians,
  ...neighbours,
  ...nodePort,
  ...otherNode,
  ...outward,
  ...ownBackends,
  ...ownNode,
  ...ownPorts,
  ...ownPrefixes,
  ...path,
  ...policy,
  ...policyFlows,
  ...policyServices,
  ...policyStaged,
  ...routed,
  ...sizes,
  ...tags,
  ...standard,
  ...takeover,
  ...takeoverTunnel,
  ...tcp,
  ...telling,
  ...tunnelEnd,
  ...untracked,
  ...vteps,
]

/** Those that programs for such a kernel are to pass. */
export function casesFor({ jiffies }: { readonly jiffies: boolean }): readonly PacketCase[] {
  return cases.filter(({ newer }) => newer !== true || jiffies)
}
