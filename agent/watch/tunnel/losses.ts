// SPDX-License-Identifier: Apache-2.0
/** Losses between this node and others, in words. Layer: agent (pure). */
import type { Port } from '#lib/base/ip.ts'
import { lostOf, missesOf, type Heard, type Lost } from './judge.ts'
import { KINDS, type Kind } from './probe-packet.ts'
import type { Peer } from './peers.ts'

export interface Loss {
  readonly peer: string
  readonly family: Peer['family']
  readonly direction: 'from' | 'to' | 'to and from'
  readonly lost: Lost
  /** of the peer's large packets; 0: not known */
  readonly size: number
}

/** What is known of one way to a peer. */
export interface Known {
  readonly heard: Heard | undefined
  /** its agent asks as we do, but nothing at all is heard of it in the tunnel */
  readonly isSilent: boolean
}

/** What the peer is to hear of its probes. */
export function toTell({ heard, isSilent }: Known): readonly Kind[] {
  if (isSilent) return KINDS
  return heard === undefined ? [] : missesOf(heard)
}

export function lossesOf({ name, family }: Peer, known: Known): readonly Loss[] {
  const said = known.isSilent ? undefined : known.heard?.said
  const [from, to] = [lostOf(toTell(known)), lostOf(said?.misses ?? [])]
  const loss = (direction: Loss['direction'], lost: Lost | undefined): readonly Loss[] =>
    lost === undefined ? [] : [{ peer: name, family, direction, lost, size: said?.size ?? 0 }]
  return from === to ? loss('to and from', from) : [...loss('from', from), ...loss('to', to)]
}

export function lossText({ peer, family, direction, lost, size }: Loss): string {
  return `${direction} node ${peer} over ${family}: ${WHAT[lost](size)} are lost`
}

const WHAT: Readonly<Record<Lost, (size: number) => string>> = {
  all: () => 'all packets of the tunnel',
  unsummed: () => 'packets of the tunnel without a UDP checksum',
  large: (size) => `large packets of the tunnel (${size} bytes)`,
}

export function hintOf(lost: Lost, port: Port): string {
  if (lost === 'unsummed') return 'set bpfTunnelUDPChecksum: Enabled in FelixConfiguration'
  if (lost === 'all') return `a firewall between them drops UDP to port ${port}`
  return "the network between them takes less than its devices' MTU, and says so to nobody: lower the MTU of the nodes' devices"
}
