// SPDX-License-Identifier: Apache-2.0
/** The addresses of testkit/packets/cluster.ts by what they are to a frame. Layer: test. */
import { parseAddr, parseCidr } from '#lib/base/ip.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import { families } from '../../../testkit/packets/cluster.ts'
import type { Family } from '../../../testkit/packets/cluster.ts'

const all = (of: (f: Family) => readonly string[]): readonly Addr[] => families.flatMap(of).map(parseAddr)
const cidrs = (...texts: readonly string[]): readonly Cidr[] => texts.map(parseCidr)
/** of the pod that test runs come from */
export const OWN = all((f) => [f.pod, f.secondPod, f.maskedPod, f.routedPod])
/** of another plugin, which may have it on a link with others */
export const ROUTED = all((f) => [f.routedPod])
export const LOCAL = all((f) => [f.pod, f.secondPod, f.maskedPod, f.routedPod, f.elsewherePod])
export const OVERLAY = all((f) => [f.overlayPod])
export const NODE = all((f) => [f.node, f.quietOwn])
/** the node's to itself: what it sends to its pods may come from there */
export const LOOPBACK = all((f) => [f.loopback])
export const OTHERS = all((f) => [f.otherNode, f.thirdNode, ...f.alikeNodes])
export const LOST = all((f) => [f.lost])
export const NO_SOURCE = cidrs('127.0.0.0/8', '0.0.0.0/8', '224.0.0.0/4', '255.255.255.255/32', '::1/128', '::/128', 'ff00::/8')
export const LINK = cidrs('169.254.0.0/16', 'fe80::/10')
export const TO_ALL = cidrs('224.0.0.0/4', '255.255.255.255/32', '192.168.50.255/32', 'ff00::/8')
export const LINK_GROUPS = cidrs('fe80::/10', 'ff02::/16', 'ff01::/16')
export const UNSPECIFIED = cidrs('::/128', '0.0.0.0/32')

/** what is reached by the namespace's routes, but for pods */
export const REACHED = [
  ...cidrs('192.168.50.0/24', 'fd00:50::/64'),
  ...families.flatMap((f) => [f.remotePod, ...f.alikeNodes].map((addr) => parseCidr(`${addr}/${f.v4 ? 32 : 128}`))),
]
/** Linux drops packets from these, whatever its settings: martians, and what ip6_forward() refuses */
export const NEVER_FROM_V4 = cidrs('127.0.0.0/8', '0.0.0.0/8', '224.0.0.0/4', '255.255.255.255/32')
export const NEVER_FROM_V6 = cidrs('::/127', 'ff00::/8', 'fe80::/10')
