// SPDX-License-Identifier: Apache-2.0
/** What a group of probes tells in a container's termination message: codes and their arguments, for it is short.
 * Layer: lib/preflight (pure). */
import { errorText, ParseError } from '../base/errors.ts'
import { isObject } from '../base/object.ts'
import { FINDINGS, isFindingCode, levelOf, PROBE_GROUPS, type Finding } from './findings.ts'

/** Of what is found that is no fault: "cluster" → its UID. Facts of all groups of a node have different names. */
export type Facts = Readonly<Record<string, string>>

export interface NodeReport {
  readonly findings: readonly Finding[]
  /** how many more there were, for which there was no room; blocking ones are cut last */
  readonly cut: number
  readonly facts: Facts
}

/** The kubelet cuts a message after this, and divides the second among all containers of a pod, init containers
 * included. */
const CONTAINER_BYTES = 4096
const POD_BYTES = 12_288
/** Beside the groups there is the container that rests, and a person may add one to look around. */
const OTHER_CONTAINERS = 2
export const MOST_REPORT_BYTES = Math.min(CONTAINER_BYTES, Math.floor(POD_BYTES / (PROBE_GROUPS.length + OTHER_CONTAINERS)))

/** Of one argument: a name or a reason. */
const MOST_ARGUMENT = 200
const VERSION = 1

/** Throws RangeError when not even the facts have room. */
export function writeReport(findings: readonly Finding[], mostBytes: number = MOST_REPORT_BYTES, facts: Facts = {}): string {
  const rank = ({ code }: Finding): number => (levelOf(code) === 'blocking' ? 0 : 1)
  const ordered = findings.toSorted((a, b) => rank(a) - rank(b)).map(({ code, args }) => [code, ...args.map(shortened)])
  for (let kept = ordered.length; kept >= 0; kept--) {
    const text = JSON.stringify({ version: VERSION, facts, findings: ordered.slice(0, kept), cut: ordered.length - kept })
    if (new TextEncoder().encode(text).length <= mostBytes) return text
  }
  throw new RangeError(`a report needs more than ${mostBytes} bytes`)
}

/** Without what would move a terminal's cursor or begin a line. */
export function plainText(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ')
}

function shortened(text: string): string {
  return text.length <= MOST_ARGUMENT ? text : `${text.slice(0, MOST_ARGUMENT).toWellFormed()}…`
}

/** Throws ParseError for anything that {@link writeReport} has not written. A node is not trusted: it says nothing of
 * other groups than it was asked for (undefined: any), and its words are plain and short. */
export function readReport(text: string, group?: string): NodeReport {
  const wrong = (reason: string): ParseError => new ParseError('preflight report', text, reason)
  const { version, facts, findings, cut } = fieldsOf(text, wrong)
  if (version !== VERSION) throw wrong(`version ${JSON.stringify(version)}`)
  if (typeof cut !== 'number' || !Number.isSafeInteger(cut) || cut < 0) throw wrong('cut')
  if (!isObject(facts) || !isTexts(facts)) throw wrong('facts')
  if (!Array.isArray(findings)) throw wrong('findings')
  return { findings: findings.map((one: unknown) => findingOf(one, { group, wrong })), cut, facts }
}

type Wrong = (reason: string) => ParseError

function fieldsOf(text: string, wrong: Wrong): Readonly<Record<string, unknown>> {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch (thrown) {
    throw wrong(errorText(thrown))
  }
  if (!isObject(parsed)) throw wrong('no object')
  return parsed
}

function findingOf(value: unknown, { group, wrong }: { readonly group: string | undefined; readonly wrong: Wrong }): Finding {
  const list: readonly unknown[] = Array.isArray(value) ? value : []
  const texts = list.filter((one) => typeof one === 'string')
  const [code = '', ...args] = texts
  if (texts.length !== list.length || !isFindingCode(code)) throw wrong(`finding ${JSON.stringify(value)}`)
  if (group !== undefined && FINDINGS[code].group !== group) throw wrong(`${code} is not of ${group}`)
  return { code, args: args.map((arg) => shortened(plainText(arg))) }
}

function isTexts(facts: Readonly<Record<string, unknown>>): facts is Facts {
  return Object.values(facts).every((value) => typeof value === 'string')
}
