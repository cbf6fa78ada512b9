// SPDX-License-Identifier: Apache-2.0
/** Truth tables against an adapter: for each step of a case its state is loaded, then every pair is asked for.
 * Layer: test. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { PortOrIcmp, State, StateExternal, StatePod } from './world.ts'

interface Answer {
  readonly ingress: boolean
  readonly egress: boolean
}

/** What stands behind a table: the evaluator, compiled tables, or loaded programs. */
export interface Adapter {
  readonly name: string
  load(state: State): unknown
  verdict(
    context: unknown,
    from: StatePod | StateExternal,
    to: StatePod | StateExternal,
    proto: string,
    port: PortOrIcmp,
  ): Answer | Promise<Answer>
  unload?(context: unknown): void | Promise<void>
  caseStart?(table: Table): void | Promise<void>
  caseEnd?(table: Table): void | Promise<void>
}

/** "." allowed, "X" not, "-" not asked; rows are senders, columns receivers. */
interface Matrix {
  readonly ingress: readonly string[]
  readonly egress: readonly string[]
  readonly combined: readonly string[]
}

export interface Step {
  readonly state: State & { readonly external: readonly StateExternal[] }
  readonly order: readonly string[]
  /** by "TCP/80" or "ICMP/8.0" */
  readonly expected: Readonly<Record<string, Matrix>>
}

export interface Table {
  readonly id: string
  readonly description: string
  readonly steps: readonly Step[]
}

/** How many pairs were asked for, and one line for each that was answered otherwise. */
export interface Outcome {
  readonly asked: number
  readonly wrong: readonly string[]
}

export function tablesIn(folder: string): readonly Table[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'))
  return files.sort().map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Table)
}

export async function compare(adapter: Adapter, table: Table): Promise<Outcome> {
  let asked = 0
  const wrong: string[] = []
  await adapter.caseStart?.(table)
  for (const [number, step] of table.steps.entries()) {
    const context = await adapter.load(step.state)
    for (const [key, matrix] of Object.entries(step.expected)) {
      for (const { from, to, want } of questions(step, matrix)) {
        asked++
        const got = await adapter.verdict(context, from, to, protocolOf(key), portOf(key))
        if (text(got) !== want)
          wrong.push(`${table.id} step ${number}: ${from.name} to ${to.name}, ${key}: ${text(got)} instead of ${want}`)
      }
    }
    await adapter.unload?.(context)
  }
  await adapter.caseEnd?.(table)
  return { asked, wrong }
}

export interface Question {
  readonly from: StatePod | StateExternal
  readonly to: StatePod | StateExternal
  /** egress, then ingress */
  readonly want: string
}

/** Every pair that the matrix says something of. */
export function* questions({ state, order }: Step, { ingress, egress }: Matrix): Iterable<Question> {
  const ends = new Map<string, StatePod | StateExternal>()
  for (const pod of state.pods) ends.set(`${pod.ns}/${pod.name}`, pod)
  for (const external of state.external) ends.set(external.name, external)
  for (const [row, fromName] of order.entries())
    for (const [column, toName] of order.entries()) {
      const [from, to] = [ends.get(fromName), ends.get(toName)]
      const want = (egress[row]?.[column] ?? '') + (ingress[row]?.[column] ?? '')
      if (from !== undefined && to !== undefined && row !== column && !want.includes('-')) yield { from, to, want }
    }
}

function text({ egress, ingress }: Answer): string {
  return (egress ? '.' : 'X') + (ingress ? '.' : 'X')
}

function protocolOf(key: string): string {
  return key.split('/')[0] ?? ''
}

function portOf(key: string): PortOrIcmp {
  const [protocol, rest = ''] = key.split('/')
  const [type, code] = rest.split('.').map(Number)
  return protocol === 'ICMP' ? { type: type ?? 0, code: code ?? 0 } : Number(rest)
}
