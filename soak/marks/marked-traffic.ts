// SPDX-License-Identifier: Apache-2.0
/** Starts marked flows, and says which were not judged as they should be. Layer: soak. */
import { readFileSync } from 'node:fs'
import { systemClock } from '#lib/base/clock.ts'
import { endpointText, type Endpoint } from '../../lab/tools/address.ts'
import {
  isProbeResult,
  isNegativeProbeResult,
  isSinkResult,
  type NegativeProbe,
  type NegativeProbeResult,
  type Run,
} from '../../lab/tools/probes.ts'
import { FAMILIES, PROTOS } from '../../testkit/lab/manifests.ts'
import { toolCommand } from '../../lab/paths.ts'
import { Running, type Spawner } from '../../lab/traffic/traffic.ts'
import { ANCHORS, podAddress, VISITORS } from '../cluster.ts'
import { ALWAYS, MARKED_FLOWS, NEVER, NEVER_ECHO, PAIR, SENDERS, SINKS } from './marked-flows.ts'

/** Rounds a second of each pair; attempts a second at each closed port. */
const [RATE, KNOCKS] = [50, 10]
/** ms of unchanged policies at the end, in which open flows follow as well */
const LAST_MS = 2000
/** Not from the pod's own node: its processes may always. */
const KNOCKERS: Readonly<Record<string, readonly string[]>> = { 'shell-b': [...ANCHORS, ...VISITORS], 'node/c': [ANCHORS[0], ANCHORS[1]] }

export interface MarkedResult {
  /** by id, "a-4>b-4:9001v4"; of open flows "…/0" and "…/1" */
  readonly runs: Readonly<Record<string, readonly Run[]>>
  /** datagrams by id, of those that are flows of their own */
  readonly sent: Readonly<Record<string, number>>
  /** by code */
  readonly errors: Readonly<Record<string, number>>
  readonly knocks: readonly NegativeProbe[]
  /** ms since 1970 when the last was sent */
  readonly end: number
}

/** Throws LabError when a tool does not do its work. */
export async function underMarks(lab: Spawner, happen: () => Promise<void>): Promise<MarkedResult> {
  const sinks = SINKS.map((pod) => startSink(lab, pod))
  await Promise.all(sinks.map((sink) => sink.event('started', 10_000)))
  const beats = SENDERS.map((pod) => startBeat(lab, pod))
  const knocks = Object.entries(KNOCKERS).map(([place, pods]) => startKnocks(lab, place, pods))
  await Promise.all([...beats, ...knocks].map((tool) => tool.event('started', 10_000)))
  await happen()
  await systemClock.sleep(LAST_MS, new AbortController().signal)
  const end = systemClock.wall()
  const beaten = await Promise.all(beats.map((beat) => beat.stop()))
  const knocked = await Promise.all(knocks.map((knock) => knock.stop()))
  const sunk = await Promise.all(sinks.map((sink) => sink.stop()))
  return {
    runs: merged(sunk.map(({ runs }) => runs)),
    sent: merged(beaten.map(({ sent }) => sent)),
    errors: merged(beaten.map(({ errors }) => errors)),
    knocks: knocked.flatMap((result) => result.knocks),
    end,
  }
}

function merged<T>(parts: readonly Readonly<Record<string, T>>[]): Record<string, T> {
  return Object.fromEntries(parts.flatMap((part) => Object.entries(part)))
}

function startSink(lab: Spawner, pod: string) {
  const listen = [...PAIR, ...ALWAYS, ...NEVER].flatMap((port) => ['--listen', String(port)])
  const child = lab.spawn(pod, [...toolCommand('datagram-sink'), ...listen])
  return new Running(child, { subject: `sink in ${pod}`, isResult: isSinkResult })
}

/** On one processor: what is sent first is judged first. */
function startBeat(lab: Spawner, pod: string) {
  const streams = MARKED_FLOWS.filter(({ from }) => from === pod).map(({ id, address, ports }) =>
    [id, ...ports.map((port) => endpointText({ proto: 'udp', address, port }))].join(' '),
  )
  const command = [...toolCommand('probe-sender'), '--rate', String(RATE), ...streams.flatMap((stream) => ['--stream', stream])]
  const child = lab.spawn(pod, ['taskset', '-c', ownProcessor(), ...command])
  return new Running(child, { subject: `beat from ${pod}`, isResult: isProbeResult })
}

/** The first that we may use. */
function ownProcessor(): string {
  return /^Cpus_allowed_list:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0'
}

/** At closed ports of these pods, from a place that is not on their node. */
export function startKnocks(lab: Spawner, place: string, pods: readonly string[]): Running<NegativeProbeResult> {
  const ends = pods.flatMap((pod) =>
    FAMILIES.flatMap((family) => PROTOS.map((proto): Endpoint => ({ proto, address: podAddress(pod, family), port: NEVER_ECHO }))),
  )
  const command = [...toolCommand('negative-probe'), '--rate', String(KNOCKS), ...ends.flatMap((end) => ['--to', endpointText(end)])]
  return new Running(lab.spawn(place, command), { subject: `knocks from ${place}`, isResult: isNegativeProbeResult })
}
