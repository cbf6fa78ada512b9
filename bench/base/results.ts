// SPDX-License-Identifier: Apache-2.0
/** The form of bench/results/latest.json, and the figures put into it. Layer: bench (pure). */
import { WINDOW_SECONDS } from '#lib/flows/flow.ts'
import type { ControlFigure, FlowsFigure, ListFigure, PolicyFigure } from '../control/result.ts'
import type { LossFigure, Losses } from '../loss/result.ts'
import type { PacketFigure } from '../packet/result.ts'
import type { Contender, Measure, RatioFigure } from '../path/result.ts'
import { PEERS } from '../path/result.ts'
import { ParseError } from '#lib/base/errors.ts'
import { isObjectWith } from './shape.ts'
import type { Interval } from './statistics.ts'
import { median } from './statistics.ts'

export interface Facts {
  readonly kernel: string
  readonly cores: number
  readonly cpu: string
  readonly date: string
  readonly commit: string
}

/** ns a packet */
export interface PacketResult {
  readonly net_ns: number
  readonly baseline_ns: number
  readonly median_ns: number
  /** new flows in a table that has been used */
  readonly used_ns?: number
}

/** to the plain path */
export type Ratios = Readonly<Partial<Record<Measure, number>>>

export type PathResult = Ratios & { readonly peers: Readonly<Record<string, Ratios>> }

export interface LossResult {
  readonly runs: number
  readonly lost: number
  readonly refused: number
  /** by what was removed */
  readonly removed?: Readonly<Record<string, { readonly lost: number; readonly refused: number; readonly back_ms: number }>>
}

/** Drops that are no fault of the data plane, and the run without the fault. */
export type LossNoise = Drops & { readonly control: Pick<LossResult, 'lost' | 'refused'> & Drops }

interface Drops {
  readonly socket_drops: number
  readonly softnet_drops: number
}

/** How far the figures may be trusted. */
export interface Noise {
  /** load averages before and after */
  readonly load: readonly [before: number, after: number]
  /** nine of ten rounds were at or below this */
  readonly packet: Readonly<Record<string, { readonly p90_ns: number }>>
  /** 95 % intervals of ours */
  readonly path: Readonly<Record<string, Readonly<Partial<Record<Measure, Interval>>>>>
  /** range of the rounds; CPU time is not disturbed by what else runs */
  readonly control: Readonly<Record<string, { readonly low: number; readonly high: number; readonly cpu_ms?: number }>>
  /** files of before losses were counted have none */
  readonly loss?: Readonly<Record<string, LossNoise>>
}

export interface Results {
  readonly facts: Facts
  readonly packet: Readonly<Record<string, PacketResult>>
  readonly path: Readonly<Record<string, PathResult>>
  readonly control: Readonly<Record<string, number>>
  readonly loss: Readonly<Record<string, LossResult>>
  readonly noise: Noise
}

/** From the text of a file. Throws ParseError for anything else. */
export function parseResults(text: string): Results {
  const value: unknown = JSON.parse(text)
  if (!isObjectWith<Results>(value, ['facts', 'packet', 'path', 'control', 'loss', 'noise']))
    throw new ParseError('benchmark result', text.slice(0, 40))
  return value
}

export function packetResults(figures: readonly PacketFigure[]): Pick<Results, 'packet'> & { readonly noise: Noise['packet'] } {
  return {
    packet: Object.fromEntries(
      figures.map((figure) => [
        figure.id,
        {
          ...{ net_ns: rounded(figure.net), baseline_ns: rounded(figure.baseline), median_ns: rounded(figure.median) },
          ...(figure.used !== undefined && { used_ns: rounded(figure.used) }),
        },
      ]),
    ),
    noise: Object.fromEntries(figures.map((figure) => [figure.id, { p90_ns: rounded(figure.p90) }])),
  }
}

export function pathResults(figures: readonly RatioFigure[]): Pick<Results, 'path'> & { readonly noise: Noise['path'] } {
  const ids = [...new Set(figures.map((figure) => figure.path))]
  const of = (id: string, contender: Contender): RatioFigure[] =>
    figures.filter((figure) => figure.path === id && figure.contender === contender)
  const ratios = (id: string, contender: Contender): Ratios =>
    Object.fromEntries(of(id, contender).map((figure) => [figure.measure, rounded(figure.ratio, 4)]))
  const intervals = (id: string): Partial<Record<Measure, Interval>> =>
    Object.fromEntries(
      of(id, 'netplane').map((figure) => [
        figure.measure,
        { low: rounded(figure.interval.low, 4), high: rounded(figure.interval.high, 4) },
      ]),
    )
  return {
    path: Object.fromEntries(
      ids.map((id) => {
        const peers = PEERS.filter((peer) => of(id, peer).length > 0).map((peer) => [peer, ratios(id, peer)] as const)
        return [id, { ...ratios(id, 'netplane'), peers: Object.fromEntries(peers) }]
      }),
    ),
    noise: Object.fromEntries(ids.map((id) => [id, intervals(id)])),
  }
}

type Control = Pick<Results, 'control'> & { readonly noise: Noise['control'] }

export function controlResults(
  figures: readonly ControlFigure[],
  policies: readonly PolicyFigure[] = [],
  lists: readonly ListFigure[] = [],
): Control {
  const control: Record<string, number> = {}
  const noise: Record<string, Noise['control'][string]> = {}
  const timed = (id: string, seconds: readonly number[], cpuMs: readonly number[]): void => {
    control[id] = rounded(median(seconds), 3)
    noise[id] = { ...rangeOf(seconds, 3), cpu_ms: rounded(median(cpuMs)) }
  }
  const memory = (id: string, { now, peak }: ControlFigure['memoryMb']): void => {
    control[id] = rounded(now)
    noise[id] = { low: rounded(now), high: rounded(peak) }
  }
  for (const figure of figures) {
    const size = sizeText(figure.services)
    memory(`rss_mb.${size}`, figure.memoryMb)
    // as large as by default, with nothing in them; what is not preallocated grows with what is
    control['map_mb'] = rounded(Math.min(control['map_mb'] ?? Infinity, figure.mapMb.total))
    if (figure.services === 0) continue
    control[`map_mb.${size}`] = rounded(figure.mapMb.total)
    timed(`cold_sync_s.${size}`, figure.coldSeconds, figure.coldCpuMs)
    timed(`warm_restart_s.${size}`, figure.warmSeconds, figure.warmCpuMs)
    control[`warm_writes.${size}`] = figure.warmWrites
    control[`change_ms_p50.${size}`] = rounded(figure.changeMs.p50, 2)
    control[`change_ms_p99.${size}`] = rounded(figure.changeMs.p99, 2)
    control[`readback_cpu_percent.${size}`] = rounded(figure.idleCpuPercent, 2)
    control[`change_cpu_ms.${size}`] = rounded(figure.changeCpuMs, 2)
    noise[`change_ms_p50.${size}`] = { low: rounded(figure.changeMs.p25, 2), high: rounded(figure.changeMs.p75, 2) }
  }
  for (const figure of lists) {
    const size = sizeText(figure.services)
    for (const [who, { cpuSeconds, peakMb }] of [['', figure] as const, ['client_node_', figure.clientNode] as const]) {
      control[`${who}list_cpu_s.${size}`] = rounded(median(cpuSeconds), 3)
      noise[`${who}list_cpu_s.${size}`] = rangeOf(cpuSeconds, 3)
      control[`${who}list_peak_mb.${size}`] = rounded(median(peakMb))
      noise[`${who}list_peak_mb.${size}`] = rangeOf(peakMb, 1)
    }
  }
  for (const figure of policies) {
    const size = sizeText(figure.pods)
    timed(`policy_sync_s.${size}`, figure.coldSeconds, figure.coldCpuMs)
    control[`policy_pod_ms.${size}`] = rounded(figure.podMs.p50, 2)
    control[`policy_pod_ms_p99.${size}`] = rounded(figure.podMs.p99, 2)
    noise[`policy_pod_ms.${size}`] = {
      low: rounded(figure.podMs.p25, 2),
      high: rounded(figure.podMs.p75, 2),
      cpu_ms: rounded(figure.podCpuMs, 2),
    }
    memory(`policy_rss_mb.${size}`, figure.memoryMb)
    control[`policy_map_mb.${size}`] = rounded(figure.mapMb)
  }
  return { control, noise }
}

/** A second, and of which the table has those of the last half minute; beside them as many live ones. */
const NEW_FLOWS = 10_000
const LOOKED_AT = 100_000 + 30 * NEW_FLOWS

export function flowsResults(figures: readonly FlowsFigure[]): Results['control'] {
  return Object.fromEntries(
    figures.flatMap(({ eventUs, entryUs, memoryMb }) => [
      ['flow_event_us', rounded(eventUs, 2)],
      ['flow_entry_us', rounded(entryUs, 2)],
      ['flow_cpu_percent', rounded((NEW_FLOWS * eventUs + (LOOKED_AT * entryUs) / WINDOW_SECONDS) / 1e4)],
      ['flow_mb.100k', rounded(memoryMb)],
    ]),
  )
}

export function lossResults(figures: readonly LossFigure[]): Pick<Results, 'loss'> & { readonly noise: NonNullable<Noise['loss']> } {
  const drops = (losses: Losses): Drops => ({ socket_drops: losses.socketDrops, softnet_drops: losses.softnetDrops })
  const counted = ({ lost, refused }: Losses): Pick<LossResult, 'lost' | 'refused'> => ({ lost, refused })
  const removals = (all: NonNullable<LossFigure['removed']>): NonNullable<LossResult['removed']> =>
    Object.fromEntries(Object.entries(all).map(([name, one]) => [name, { ...counted(one), back_ms: rounded(one.backMs) }]))
  return {
    loss: Object.fromEntries(
      figures.map(({ id, runs, fault, removed }) => [
        id,
        { runs, ...counted(fault), ...(removed !== undefined && { removed: removals(removed) }) },
      ]),
    ),
    noise: Object.fromEntries(
      figures.map(({ id, fault, control }) => [id, { ...drops(fault), control: { ...counted(control), ...drops(control) } }]),
    ),
  }
}

/** Losses are counted by several programs and seldom all at once: those that were not counted now stay. Where
 * nothing else was measured (`onlyLoss`), the rest of the file stays as well, with its facts. */
export function mergeLoss(now: Results, before: Results, onlyLoss: boolean): Results {
  const { noise, ...rest } = onlyLoss ? before : now
  return {
    ...rest,
    loss: { ...before.loss, ...now.loss },
    noise: { ...noise, loss: { ...before.noise.loss, ...now.noise.loss } },
  }
}

function rangeOf(values: readonly number[], digits: number): { readonly low: number; readonly high: number } {
  return { low: rounded(Math.min(...values), digits), high: rounded(Math.max(...values), digits) }
}

/** "idle", "1k", "10k" */
export function sizeText(count: number): string {
  return count === 0 ? 'idle' : count % 1000 === 0 ? `${count / 1000}k` : String(count)
}

export function rounded(value: number, digits = 1): number {
  return Number(value.toFixed(digits))
}
