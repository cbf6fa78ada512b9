// SPDX-License-Identifier: Apache-2.0
/** What measuring at scale ends in. Layer: bench (pure). */
import type { Memory } from '../base/process.ts'

export const CONTENDERS = ['netplane', 'kube-proxy'] as const
export type Contender = (typeof CONTENDERS)[number]

/** One start with nothing there before, until all services are served. */
export interface Sync {
  readonly seconds: number
  readonly cpuMs: number
}

/** CPU times are those of the children too. */
export interface ScaleFigure {
  readonly contender: Contender
  readonly syncs: readonly Sync[]
  /** a while after the last of them */
  readonly memoryMb: Memory
  /** from sending a changed EndpointSlice to the API server until a lookup sees it */
  readonly changeMs: readonly number[]
  /** of these, until another watcher had heard of it */
  readonly toldMs: readonly number[]
  /** of one change */
  readonly changeCpuMs: number
}

/** So many clients with the agent's watches, each with a connection of its own. CPU and bytes are those of the API
 * server, and of all. */
export interface FanOutFigure {
  readonly watchers: number
  /** until each watch has begun */
  readonly beginCpuMs: number
  /** resident, MB (1e6) */
  readonly memoryMb: number
  /** when nothing changes */
  readonly idleCpuMsPerSecond: number
  readonly idleBytesPerSecond: number
  /** of one changed EndpointSlice, its writing included */
  readonly changeCpuMs: number
  readonly changeBytes: number
  /** of one changed NodeNetwork */
  readonly networkCpuMs: number
  readonly networkBytes: number
  /** of one kubelet's report */
  readonly reportCpuMs: number
  readonly reportBytes: number
}

/** One node's lists, all kinds. */
export interface ListCost {
  readonly packed: boolean
  readonly cpuMs: number
  readonly bytes: number
}

export interface ScaleFigures {
  readonly services: number
  readonly objects: number
  readonly loadSeconds: number
  /** the agent before pods and policies were there: with what kube-proxy reads */
  readonly servicesAlone: ScaleFigure
  readonly contenders: readonly ScaleFigure[]
  readonly lists: readonly ListCost[]
  readonly fanOut: readonly FanOutFigure[]
}
