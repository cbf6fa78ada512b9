// SPDX-License-Identifier: Apache-2.0
/** What measuring the control plane ends in. Layer: bench (pure). */

/** One size of cluster; a value for each start. */
export interface ControlFigure {
  readonly services: number
  readonly coldSeconds: readonly number[]
  readonly coldCpuMs: readonly number[]
  readonly warmSeconds: readonly number[]
  readonly warmCpuMs: readonly number[]
  /** rows that the last warm start wrote or removed */
  readonly warmWrites: number
  readonly changeMs: { readonly p25: number; readonly p50: number; readonly p75: number; readonly p99: number }
  /** of one change */
  readonly changeCpuMs: number
  /** of one core, while nothing changes: tables read back in turn, and what else the agent looks after by itself */
  readonly idleCpuPercent: number
  /** a while after a start; MB of 10^6 bytes */
  readonly memoryMb: { readonly now: number; readonly peak: number }
  readonly mapMb: { readonly total: number; readonly flows: number }
}

/** A process that reads the lists of a cluster, until all objects are in. A value for each run. */
export interface ReaderFigure {
  /** more than one uses that finds nothing: its start */
  readonly cpuSeconds: readonly number[]
  /** resident, of the whole process; MB of 10^6 bytes */
  readonly peakMb: readonly number[]
}

/** The source and the store alone, and beside them the informers of client-node, run by run in turns. */
export interface ListFigure extends ReaderFigure {
  readonly services: number
  readonly clientNode: ReaderFigure
}

/** Policy of one size of cluster. */
export interface PolicyFigure {
  readonly pods: number
  /** from the start of an agent with nothing before it until all is in the kernel; a value for each start */
  readonly coldSeconds: readonly number[]
  readonly coldCpuMs: readonly number[]
  /** from rename() of its manifest until both of its addresses have their rows */
  readonly podMs: { readonly p25: number; readonly p50: number; readonly p75: number; readonly p99: number }
  readonly podCpuMs: number
  /** a while after a start; MB of 10^6 bytes */
  readonly memoryMb: { readonly now: number; readonly peak: number }
  readonly mapMb: number
}

/** The agent's part of flows that are read. */
export interface FlowsFigure {
  readonly flows: number
  /** CPU of the event that a flow has begun, in µs */
  readonly eventUs: number
  /** CPU of an entry of the flow table that is looked at, in µs */
  readonly entryUs: number
  /** with that many live flows; MB of 10^6 bytes */
  readonly memoryMb: number
}
