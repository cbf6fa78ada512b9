// SPDX-License-Identifier: Apache-2.0
/** Figures at scale, under the names by which runs are compared. Layer: bench (pure). */
import type { Results } from '../base/results.ts'
import { rounded, sizeText } from '../base/results.ts'
import { line, median, minimum, quantile } from '../base/statistics.ts'
import type { FanOutFigure, ScaleFigure, ScaleFigures } from './result.ts'

type Named = readonly (readonly [id: string, value: number])[]

/** Ours by the name alone, the others with what they are behind it. */
export function scaleControl(figures: ScaleFigures): Pick<Results, 'control'> & { readonly noise: Results['noise']['control'] } {
  const size = sizeText(figures.services)
  const control: Record<string, number> = {}
  const noise: Record<string, { readonly low: number; readonly high: number }> = {}
  const suffixed = [
    [figures.servicesAlone, `${size}.services`] as const,
    ...figures.contenders.map((figure) => [figure, figure.contender === 'netplane' ? size : `${size}.${figure.contender}`] as const),
  ]
  for (const [figure, suffix] of suffixed) {
    for (const [id, value] of contenderValues(figure)) control[`${id}.${suffix}`] = value
    const seconds = figure.syncs.map((sync) => sync.seconds)
    noise[`scale_sync_s.${suffix}`] = { low: rounded(Math.min(...seconds), 3), high: rounded(Math.max(...seconds), 3) }
    noise[`scale_rss_mb.${suffix}`] = { low: rounded(figure.memoryMb.now), high: rounded(figure.memoryMb.peak) }
    noise[`scale_change_ms_p50.${suffix}`] = {
      low: rounded(quantile(figure.changeMs, 0.25), 2),
      high: rounded(quantile(figure.changeMs, 0.75), 2),
    }
  }
  for (const [id, value] of fanOutValues(figures)) control[`${id}.${size}`] = value
  return { control, noise }
}

function contenderValues({ syncs, memoryMb, changeMs, toldMs, changeCpuMs }: ScaleFigure): Named {
  return [
    ['scale_sync_s', rounded(minimum(syncs.map(({ seconds }) => seconds)), 3)],
    ['scale_sync_cpu_s', rounded(minimum(syncs.map(({ cpuMs }) => cpuMs)) / 1000, 2)],
    ['scale_rss_mb', rounded(memoryMb.now)],
    ['scale_change_ms_p50', rounded(median(changeMs), 2)],
    ['scale_change_ms_p99', rounded(quantile(changeMs, 0.99), 2)],
    ['scale_told_ms_p50', rounded(median(toldMs), 2)],
    ['scale_change_cpu_ms', rounded(changeCpuMs, 2)],
  ]
}

/** One more node: what it costs the API server. */
export interface NodeCost {
  readonly beginCpuMs: number
  readonly memoryMb: number
  readonly changeCpuMs: number
  readonly changeBytes: number
  readonly networkCpuMs: number
  readonly networkBytes: number
  readonly reportCpuMs: number
  readonly reportBytes: number
}

/** By the line through the measured numbers of watchers. */
export function nodeCost(fanOut: readonly FanOutFigure[]): NodeCost {
  const slope = (of: Exclude<keyof FanOutFigure, 'watchers'>): number => line(fanOut.map((figure) => [figure.watchers, figure[of]])).slope
  return {
    beginCpuMs: slope('beginCpuMs'),
    memoryMb: slope('memoryMb'),
    changeCpuMs: slope('changeCpuMs'),
    changeBytes: slope('changeBytes'),
    networkCpuMs: slope('networkCpuMs'),
    networkBytes: slope('networkBytes'),
    reportCpuMs: slope('reportCpuMs'),
    reportBytes: slope('reportBytes'),
  }
}

/** Of one node. */
function fanOutValues({ fanOut, lists }: ScaleFigures): Named {
  const cost = nodeCost(fanOut)
  return [
    ['fan_out_begin_cpu_ms', rounded(cost.beginCpuMs, 2)],
    ['fan_out_memory_mb', rounded(cost.memoryMb, 2)],
    ['fan_out_change_cpu_us', rounded(cost.changeCpuMs * 1000)],
    ['fan_out_change_bytes', rounded(cost.changeBytes, 0)],
    ['fan_out_network_cpu_us', rounded(cost.networkCpuMs * 1000)],
    ['fan_out_network_bytes', rounded(cost.networkBytes, 0)],
    ['fan_out_report_cpu_us', rounded(cost.reportCpuMs * 1000)],
    ['fan_out_report_bytes', rounded(cost.reportBytes, 0)],
    ...lists.flatMap(({ packed, cpuMs, bytes }): Named => {
      const id = packed ? 'fan_out_packed_list' : 'fan_out_list'
      return [
        [`${id}_cpu_ms`, rounded(cpuMs)],
        [`${id}_mb`, rounded(bytes / 1e6, 2)],
      ]
    }),
  ]
}
