// SPDX-License-Identifier: Apache-2.0
/** Results as tables: ratios against goals, for a terminal or a page. Layer: bench (pure). */
import type { Measure } from '../path/result.ts'
import { MEASURES, PEERS } from '../path/result.ts'
import { isTime, machineSpeedOf, machineSpeedText } from './machine-speed.ts'
import { backGoalMs, controlGoals, isRate, LOSS_GOAL, packetGoal, pathGoal } from './goals.ts'
import type { Ratios, Results } from './results.ts'
import type { Interval } from './statistics.ts'

export interface Table {
  readonly title: string
  readonly head: readonly string[]
  readonly rows: readonly (readonly string[])[]
}

const NONE = ''

/** Those that have something in them. */
export function tablesOf(results: Results): Table[] {
  return [packetTable(results), pathTable(results), controlTable(results), lossTable(results)].filter((table) => table.rows.length > 0)
}

/** Columns side by side, the first to the left, the others to the right. */
export function asText(table: Table): string {
  const lines = [table.head, ...table.rows]
  const widths = table.head.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? NONE).length)))
  const cell = (text: string, column: number): string =>
    column === 0 ? text.padEnd(widths[column] ?? 0) : text.padStart(widths[column] ?? 0)
  return [table.title, ...lines.map((line) => `  ${line.map(cell).join('  ').trimEnd()}`), ''].join('\n')
}

export function asMarkdown(table: Table): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const rule = table.head.map((_, column) => (column === 0 ? '---' : '---:'))
  return [`**${table.title}**`, '', line(table.head), line(rule), ...table.rows.map(line), ''].join('\n')
}

/** Where and how; "at the goals' pace" in the tables: divided by how much longer everything takes here. */
export function factsLine(results: Results): string {
  const { facts, noise } = results
  const [before, after] = noise.load
  return `${facts.date.slice(0, 10)}, commit ${facts.commit}, Linux ${facts.kernel}, ${facts.cores} × ${facts.cpu}, load average ${before.toFixed(1)} before and ${after.toFixed(1)} after.${machineSpeedText(machineSpeedOf(results))}`
}

function packetTable({ packet, control, noise }: Results): Table {
  const pace = machineSpeedOf({ packet, control }).packet ?? 1
  const rows = Object.entries(packet).flatMap(([id, { net_ns, median_ns, baseline_ns, used_ns }]) => {
    const p90 = noise.packet[id]?.p90_ns
    const row = (name: string, net: number, rest: readonly (number | undefined)[]): string[] => {
      const goal = packetGoal(name)
      const figures = rest.map((value) => (value === undefined ? NONE : ns(value)))
      return [name, ns(net), ...figures, goal === undefined ? NONE : `≤ ${goal}`, against(net, goal), against(net / pace, goal)]
    }
    const used = used_ns === undefined ? [] : [row(id.replace('.new', '.new.used'), used_ns, [used_ns, undefined, baseline_ns])]
    return [row(id, net_ns, [median_ns, p90, baseline_ns]), ...used]
  })
  return {
    title: 'Packet cost, ns: program minus an empty one, least of the rounds',
    head: ['packet', 'net', 'median', 'p90', 'empty', 'goal', 'of goal', "at the goals' pace"],
    rows,
  }
}

const WORDS: Readonly<Record<Measure, string>> = {
  rr_p50: 'request, response',
  crr_p50: 'connect, request, response',
  pps: '64-byte UDP a second',
  tput: 'TCP throughput',
  cpu_per_gbit: 'CPU per Gbit',
  tput_wire: 'TCP throughput, 1,500-byte packets',
  cpu_per_gbit_wire: 'CPU per Gbit, 1,500-byte packets',
  tput_wire_9000: 'TCP throughput, 9,000-byte packets',
  cpu_per_gbit_wire_9000: 'CPU per Gbit, 9,000-byte packets',
}

function pathTable({ path, noise }: Results): Table {
  const peers = PEERS.filter((name) => Object.values(path).some((result) => result.peers[name] !== undefined))
  const rows = Object.entries(path).flatMap(([id, result]) =>
    MEASURES.flatMap((measure) => {
      const ratio = result[measure]
      if (ratio === undefined) return []
      const peer = (name: string): string => ratioText(result.peers[name]?.[measure])
      const interval = noise.path[id]?.[measure]
      const goal = pathGoal(id, measure, result.peers)
      return [
        [
          id,
          WORDS[measure],
          ratioText(ratio),
          intervalText(interval),
          ...peers.map(peer),
          goalText(measure, goal),
          verdict({ measure, ratio, interval, goal }),
        ],
      ]
    }),
  )
  return {
    title: 'Paths, as ratios to the plain path by the same hops: times and CPU below 1 are better, rates above',
    head: ['path', 'what', 'netplane', '95 %', ...peers, 'goal', 'met'],
    rows,
  }
}

function controlTable({ packet, control, noise }: Results): Table {
  const pace = machineSpeedOf({ packet, control }).control
  const rows = Object.entries(control).map(([id, value]) => {
    const range = noise.control[id]
    const goal = controlGoals[id]
    const cpu = range?.cpu_ms === undefined ? NONE : String(range.cpu_ms)
    const paced = goal === undefined || pace === undefined || !isTime(id) ? undefined : value / pace
    return [
      id,
      String(value),
      range === undefined ? NONE : `${range.low}–${range.high}`,
      cpu,
      goal === undefined ? NONE : `≤ ${goal}`,
      goal === undefined ? NONE : value <= goal ? 'yes' : 'no',
      paced === undefined ? NONE : paced.toFixed(2),
    ]
  })
  return {
    title: 'Control plane: 10 endpoints a service',
    head: ['what', 'value', 'range', 'CPU ms', 'goal', 'met', "at the goals' pace"],
    rows,
  }
}

function lossTable({ loss, noise }: Results): Table {
  const rows = Object.entries(loss).flatMap(([id, { runs, lost, refused, removed = {} }]) => {
    const beside = noise.loss?.[id]
    const control = beside === undefined ? NONE : `${beside.control.lost} / ${beside.control.refused}`
    const drops = beside === undefined ? NONE : `${beside.socket_drops} / ${beside.softnet_drops}`
    const parts = Object.entries(removed).map(([name, one]) => {
      const goal = backGoalMs(name)
      return [
        `${id}: ${name}, back after ${Math.round(one.back_ms)} ms`,
        '1',
        String(one.lost),
        String(one.refused),
        NONE,
        NONE,
        `${LOSS_GOAL}, ${goal} ms`,
        one.lost + one.refused <= LOSS_GOAL && one.back_ms <= goal ? 'yes' : 'no',
      ]
    })
    return [
      [id, String(runs), String(lost), String(refused), control, drops, String(LOSS_GOAL), lost + refused <= LOSS_GOAL ? 'yes' : 'no'],
      ...parts,
    ]
  })
  return {
    title: 'Lost; beside it the same without the fault, and what sockets and processors dropped',
    head: ['fault', 'runs', 'packets', 'connections', 'without', 'dropped', 'goal', 'met'],
    rows,
  }
}

/** A goal is met when the bound of the interval meets it. */
function verdict(of: {
  readonly measure: Measure
  readonly ratio: number
  readonly interval: Interval | undefined
  readonly goal: number | undefined
}): string {
  const { measure, ratio, interval, goal } = of
  if (goal === undefined) return NONE
  const meets = (value: number): boolean => (isRate(measure) ? value >= goal : value <= goal)
  if (meets(isRate(measure) ? (interval?.low ?? ratio) : (interval?.high ?? ratio))) return 'yes'
  return meets(ratio) ? 'in the middle' : 'no'
}

function goalText(measure: Measure, goal: number | undefined): string {
  return goal === undefined ? NONE : `${isRate(measure) ? '≥' : '≤'} ${goal}`
}

function ratioText(ratio: Ratios[Measure]): string {
  return ratio === undefined ? NONE : ratio.toFixed(2)
}

function intervalText(interval: Interval | undefined): string {
  return interval === undefined ? NONE : `${interval.low.toFixed(2)}–${interval.high.toFixed(2)}`
}

function ns(value: number): string {
  return Math.round(value).toString()
}

function against(value: number, goal: number | undefined): string {
  return goal === undefined ? NONE : `${Math.round((100 * value) / goal)} %`
}
