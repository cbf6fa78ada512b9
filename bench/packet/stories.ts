// SPDX-License-Identifier: Apache-2.0
/** What is measured: which packet at which hooks, and what made its flow. Layer: bench. */
import { tcp } from '../../testkit/packets/packet.ts'
import type { Family } from '../../testkit/packets/cluster.ts'
import { at } from '../../testkit/packets/cluster.ts'
import type { ProgramName } from './node.ts'
import { BACKEND_PORT, FAR_PORT, NEAR_PORT, firstSender } from './node.ts'

/** base/mark.h: decided by this node */
export const MARK_DECIDED = 0x01000000
export const PASS = -1
export const REDIRECT = 7

/** One program that the story's packet meets. */
export interface Hook {
  readonly program: ProgramName
  readonly packet: Uint8Array
  readonly mark?: number
  readonly action: typeof PASS | typeof REDIRECT
  /** it adds a tunnel header, which the wrapper takes off again */
  readonly encapsulates?: boolean
}

/** A packet of the flow's beginning, run once each before measuring. */
export interface Opening {
  readonly program: ProgramName
  readonly packet: Uint8Array
}

export interface Story {
  /** as in goals.md, ".v6" for the other family */
  readonly id: string
  /** what one has to know to read the number */
  readonly note: string
  readonly opening: readonly Opening[]
  readonly hooks: readonly Hook[]
}

const SYN_OPTIONS = { mss: 1460, wscale: 7 }
const PAYLOAD = new Uint8Array(64).fill(0x61)

interface Ends {
  readonly from: string
  readonly to: string
}

/** The three packets that open a connection, and one with data. `ttl` as the hook sees it. */
const packets = {
  syn: (ends: Ends, ttl = 64): Uint8Array => tcp(ends.from, ends.to, { flags: 'S', ttl, payload: PAYLOAD, ...SYN_OPTIONS }),
  synAck: (ends: Ends): Uint8Array => tcp(ends.from, ends.to, { flags: 'SA', ack: 1001, payload: PAYLOAD, ...SYN_OPTIONS }),
  data: (ends: Ends, ttl = 64): Uint8Array => tcp(ends.from, ends.to, { flags: 'PA', seq: 1001, ack: 1001, ttl, payload: PAYLOAD }),
}

/** The first packet of a connection. */
export const synOf = packets.syn

function turned(ends: Ends): Ends {
  return { from: ends.to, to: ends.from }
}

/** A connection of which this node has both hooks: `sent` as the client says it, `got` as the backend hears it; it
 * goes into its pod past the other hook. */
function connection(options: { readonly sent: Ends; readonly got: Ends; readonly enters: ProgramName }): readonly Opening[] {
  const { sent, got, enters } = options
  return [
    { program: enters, packet: packets.syn(sent) },
    { program: 'from_workload', packet: packets.synAck(turned(got)) },
    { program: enters, packet: packets.data(sent) },
    { program: 'from_workload', packet: packets.data(turned(got)) },
  ]
}

const PEER = 'redirected into the pod: the other hook does not run'

/** Stories on one established connection each; no two share a tuple. */
export function establishedStories(f: Family): Story[] {
  const suffix = f.v4 ? '' : '.v6'
  const podToPod = { from: at(f.pod, 41001), to: at(f.secondPod, 80) }
  const extToPod = { from: at(f.client, 41002), to: at(f.pod, 80) }
  const cluster = {
    sent: { from: at(f.secondPod, 41003), to: at(f.vip, 80) },
    got: { from: at(f.secondPod, 41003), to: at(f.pod, BACKEND_PORT) },
  }
  const near = {
    sent: { from: at(f.client, 41004), to: at(f.node, NEAR_PORT) },
    got: { from: at(f.client, 41004), to: at(f.pod, BACKEND_PORT) },
  }
  const inward = (program: ProgramName, ends: Ends): Hook => ({ program, packet: packets.data(ends), action: REDIRECT })
  const marked = (program: ProgramName, ends: Ends): Hook => ({ program, packet: packets.data(ends, 63), mark: MARK_DECIDED, action: PASS })
  return [
    {
      id: `pod-pod.est${suffix}`,
      note: PEER,
      opening: connection({ sent: podToPod, got: podToPod, enters: 'from_workload' }),
      hooks: [inward('from_workload', podToPod)],
    },
    {
      id: `ext-pod.est${suffix}`,
      note: PEER,
      opening: connection({ sent: extToPod, got: extToPod, enters: 'from_host' }),
      hooks: [inward('from_host', extToPod)],
    },
    {
      id: `clusterip.est${suffix}`,
      note: PEER,
      opening: connection({ ...cluster, enters: 'from_workload' }),
      hooks: [inward('from_workload', cluster.sent)],
    },
    { id: `clusterip.reply${suffix}`, note: PEER, opening: [], hooks: [inward('from_workload', turned(cluster.got))] },
    {
      id: `nodeport-local.est${suffix}`,
      note: PEER,
      opening: connection({ ...near, enters: 'from_host' }),
      hooks: [inward('from_host', near.sent)],
    },
    {
      id: `nodeport-local.reply${suffix}`,
      note: 'from_workload and, marked, to_host',
      opening: [],
      hooks: [inward('from_workload', turned(near.got)), marked('to_host', turned(near.sent))],
    },
    farStory(f),
    {
      id: `marked.to_workload${suffix}`,
      note: 'a hook that another has decided for',
      opening: [],
      hooks: [marked('to_workload', podToPod)],
    },
  ]
}

function farStory(f: Family): Story {
  const sent = { from: at(f.client, 41005), to: at(f.node, FAR_PORT) }
  return {
    id: `nodeport-remote.second${f.v4 ? '' : '.v6'}`,
    note: 'encapsulates in the program, from_host and, marked, to_host; taking the header off again is not charged',
    opening: [
      { program: 'from_host', packet: packets.syn(sent) },
      { program: 'from_host', packet: packets.data(sent) },
    ],
    hooks: [
      { program: 'from_host_replay', packet: packets.data(sent), action: REDIRECT, encapsulates: true },
      { program: 'to_host', packet: packets.data(sent, 63), mark: MARK_DECIDED, action: PASS },
    ],
  }
}

/** Stories whose every packet is a SYN of a new flow. */
export function newStories(f: Family): Story[] {
  const suffix = f.v4 ? '' : '.v6'
  const story = (id: string, sent: Ends, enters: ProgramName): Story => ({
    id: `${id}${suffix}`,
    note: `${enters}; to a pod that no policy selects, so that its own hook does not run`,
    opening: [],
    hooks: [{ program: enters, packet: packets.syn(sent), action: REDIRECT }],
  })
  // addresses and ports are counted up from these
  const pod = at(firstSender(f), 20000)
  const outside = at(f.v4 ? '192.168.60.1' : 'fd00:60::1', 20000)
  return [
    story('pod-pod.new', { from: pod, to: at(f.secondPod, 80) }, 'from_workload'),
    story('clusterip.new', { from: pod, to: at(f.vip, 80) }, 'from_workload'),
    story('nodeport-local.new', { from: outside, to: at(f.node, NEAR_PORT) }, 'from_host'),
  ]
}
