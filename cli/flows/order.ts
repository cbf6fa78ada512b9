// SPDX-License-Identifier: Apache-2.0
/** Arguments of `flows`. Layer: cli (pure). */
import { ConfigError } from '#lib/base/errors.ts'
import { durationMs } from '#lib/base/time/duration.ts'
import type { QuestionCommand } from '../commands.ts'
import type { Flag, Given } from '../given.ts'
import { FILTER_FLAGS, readFlowFilter, type FlowFilter } from './filter.ts'

export const OUTPUTS = ['table', 'compact', 'json'] as const
export type Output = (typeof OUTPUTS)[number]

export interface FlowsOrder {
  readonly kind: 'flows'
  /** of the node's agent */
  readonly socket: string
  readonly follow: boolean
  readonly output: Output
  /** of those that are known already; undefined: all */
  readonly take: { readonly from: 'first' | 'last'; readonly count: number } | undefined
  /** ms since 1970 */
  readonly since: number | undefined
  readonly until: number | undefined
  readonly filter: FlowFilter
}

const SOCKET = '/run/netplane/flows.sock'
const LAST = 20

const FLAGS: readonly Flag[] = [
  { name: 'node', about: "asks this node's agent (root)" },
  { name: 'socket', value: 'FILE', about: `where the agent tells flows (default: ${SOCKET})` },
  { name: 'follow', short: 'f', about: 'goes on with what comes' },
  { name: 'last', value: 'N', about: `the last N of those that are known already (default: ${LAST})` },
  { name: 'first', value: 'N', about: 'the first N of them' },
  { name: 'all', about: 'all of them' },
  { name: 'since', value: 'TIME', about: 'windows that begin then or later: 4m, or 2026-11-28T10:00:00Z' },
  { name: 'until', value: 'TIME', about: 'windows that begin earlier' },
  { name: 'output', short: 'o', value: 'FORMAT', about: `${OUTPUTS.join(', ')}; json: a line for each` },
  { name: 'not', about: 'negates the next filter; the same filter again: any of them; others: all of them' },
  ...FILTER_FLAGS,
]

export const flowsCommand: QuestionCommand & { readonly name: FlowsOrder['kind'] } = {
  name: 'flows',
  about: 'who talks to whom, by which rules, and what is denied or dropped; in windows of 15 s',
  words: '',
  flags: FLAGS,
}

/** Throws ConfigError that names the flag. */
export function readFlows(given: Given, now: number = Date.now()): FlowsOrder {
  const [word] = given.words
  if (word !== undefined) throw new ConfigError('flows', `${JSON.stringify(word)} is too much`)
  if (!given.has('node')) throw new ConfigError('flows', 'needs --node: flows are asked of the node that this runs on')
  return {
    kind: 'flows',
    socket: given.text('socket') ?? SOCKET,
    follow: given.has('follow'),
    output: given.has('json') ? 'json' : readOutput(given.text('output') ?? 'table'),
    take: readTake(given),
    since: readTime(given, 'since', now),
    until: readTime(given, 'until', now),
    filter: readFlowFilter(given.inOrder),
  }
}

function readOutput(text: string): Output {
  const output = OUTPUTS.find((one) => one === text)
  if (output === undefined) throw new ConfigError('--output', `${JSON.stringify(text)} is none: ${OUTPUTS.join(', ')}`)
  return output
}

function readTake(given: Given): FlowsOrder['take'] {
  const flags = (['first', 'last', 'all'] as const).filter((name) => given.has(name))
  const [flag, other] = flags
  if (other !== undefined) throw new ConfigError(`--${other}`, `is another than --${flag ?? ''}`)
  if (flag === 'all') return undefined
  const from = flag ?? 'last'
  const text = given.text(from) ?? String(LAST)
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new ConfigError(`--${from}`, `${JSON.stringify(text)} is no number of flows`)
  return { from, count: Number(text) }
}

/** So long ago, or a time. */
function readTime(given: Given, flag: 'since' | 'until', now: number): number | undefined {
  const text = given.text(flag)
  if (text === undefined) return undefined
  const ago = durationMs(text)
  const time = ago === undefined ? Date.parse(text) : now - ago
  if (Number.isNaN(time)) throw new ConfigError(`--${flag}`, `${JSON.stringify(text)} is neither a duration (4m) nor a time (RFC 3339)`)
  return time
}
