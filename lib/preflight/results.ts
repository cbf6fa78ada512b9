// SPDX-License-Identifier: Apache-2.0
/** What all nodes have answered, from the pods of a preflight. Layer: lib/preflight (pure). */
import { errorText } from '../base/errors.ts'
import { fieldsOf, isObject, objectsIn, textOf } from '../base/object.ts'
import { withoutMiddle } from '../base/text/without-middle.ts'
import type { Finding } from './findings.ts'
import { plainText, readReport, type Facts, type NodeReport } from './report.ts'

/** Of the pods' template: those of another run have nothing to say. */
export const RUN_ANNOTATION = 'operator.netplane.io/preflight-run'

/** As the API has it; only the name is known. */
export interface RawObject {
  readonly metadata: { readonly name: string; readonly [field: string]: unknown }
  readonly [field: string]: unknown
}

export interface PreflightResults {
  /** of each node that has answered; an empty list: it is fit */
  readonly findings: ReadonlyMap<string, readonly Finding[]>
  readonly facts: ReadonlyMap<string, Facts>
  /** of each node that had more findings than room: how many are not told */
  readonly cut: ReadonlyMap<string, number>
  /** nodes that have not answered yet, in the order of their names; those that are not ready or cordoned among them */
  readonly waiting: readonly string[]
  /** nodes whose probes could not look, and why */
  readonly failed: ReadonlyMap<string, string>
  /** nodes whose peers did not probe the tunnel at the same time: of that nothing is known, and a new run tells */
  readonly apart: ReadonlyMap<string, readonly string[]>
}

type Fields = Readonly<Record<string, unknown>>

interface Span {
  readonly from: number
  readonly to: number
}

interface Answered {
  readonly reports: readonly NodeReport[]
  /** when it probed the tunnel */
  readonly probed: Span | undefined
}

type Outcome = { readonly kind: 'waiting' } | { readonly kind: 'failed'; readonly why: string } | ({ readonly kind: 'answered' } & Answered)

/** The exit code of a probe that says why. */
const COULD_NOT_LOOK = 2
/** Of the text by which a probe failed; its cause is at the end. */
const MOST_WHY = 300

/** Of nodes without Linux nothing is expected. */
export function preflightResults(pods: readonly RawObject[], nodes: readonly RawObject[], run: string): PreflightResults {
  const podOf = newestByNode(pods.filter((pod) => fieldsOf(pod.metadata['annotations'])[RUN_ANNOTATION] === run))
  const names = nodes.filter(isLinux).map(({ metadata }) => metadata.name)
  const outcomes = new Map(names.sort().map((name) => [name, outcomeOf(podOf.get(name))]))
  const answered = new Map([...outcomes].flatMap(([name, one]): [string, Answered][] => (one.kind === 'answered' ? [[name, one]] : [])))
  const together = new Map([...answered].map(([name, one]) => [name, apartOf(one, answered)]))
  return {
    findings: new Map([...together].map(([name, { findings }]) => [name, findings])),
    facts: new Map(
      [...answered].map(([name, { reports }]) => [name, Object.fromEntries(reports.flatMap(({ facts }) => Object.entries(facts)))]),
    ),
    cut: new Map([...answered].flatMap(([name, { reports }]) => countOf(name, reports))),
    waiting: [...outcomes].flatMap(([name, { kind }]) => (kind === 'waiting' ? [name] : [])),
    failed: new Map(
      [...outcomes].flatMap(([name, one]): [string, string][] =>
        one.kind === 'failed' ? [[name, withoutMiddle(plainText(one.why), MOST_WHY)]] : [],
      ),
    ),
    apart: new Map([...together].flatMap(([name, { apart }]): [string, string[]][] => (apart.length === 0 ? [] : [[name, apart]]))),
  }
}

function countOf(name: string, reports: readonly NodeReport[]): [string, number][] {
  const cut = reports.reduce((sum, report) => sum + report.cut, 0)
  return cut === 0 ? [] : [[name, cut]]
}

/** In this time both sides have heard each other, if they can. */
const TOGETHER_MS = 3000

/** That a peer was not heard says nothing where that peer was not there to be heard. */
function apartOf(
  { reports, probed }: Answered,
  all: ReadonlyMap<string, Answered>,
): { readonly findings: readonly Finding[]; readonly apart: string[] } {
  const apart = new Set<string>()
  const findings = reports
    .flatMap((report) => report.findings)
    .filter(({ code, args: [peer = ''] }) => {
      if (code !== 'vxlan-lost-from') return true
      if (overlapMs(probed, all.get(peer)?.probed) >= TOGETHER_MS) return true
      apart.add(peer)
      return false
    })
  return { findings, apart: [...apart].sort() }
}

function overlapMs(one: Span | undefined, other: Span | undefined): number {
  if (one === undefined || other === undefined) return 0
  return Math.min(one.to, other.to) - Math.max(one.from, other.from)
}

function outcomeOf(pod: RawObject | undefined): Outcome {
  if (pod === undefined) return { kind: 'waiting' }
  const status = fieldsOf(pod['status'])
  const statuses = new Map(objectsIn(status['initContainerStatuses']).map((one) => [textOf(one['name']), one]))
  const groups = objectsIn(fieldsOf(pod['spec'])['initContainers']).map(({ name }) => textOf(name))
  const reports: NodeReport[] = []
  let probed: Span | undefined
  for (const group of groups) {
    const end = endOf(statuses.get(group))
    if (end === undefined) return troubleOf(group, statuses.get(group), status)
    if (end['exitCode'] !== 0) return { kind: 'failed', why: `${group}: ${whyWithout(end)}` }
    try {
      reports.push(readReport(textOf(end['message']), group))
    } catch (thrown) {
      return { kind: 'failed', why: `${group}: ${errorText(thrown)}` }
    }
    if (group === 'vxlan') probed = { from: Date.parse(textOf(end['startedAt'])), to: Date.parse(textOf(end['finishedAt'])) }
  }
  return groups.length === 0 ? { kind: 'waiting' } : { kind: 'answered', reports, probed }
}

/** Of one that has left no report. Any other exit code than its own is that of a program that this machine's kernel or
 * processor did not let start, or ended; then the message is the last that it has written. */
function whyWithout(end: Fields): string {
  const message = textOf(end['message']).trim()
  if (end['exitCode'] === COULD_NOT_LOOK && message !== '') return message
  const how = `${textOf(end['reason'])}, exit code ${String(end['exitCode'])}`
  return `the probe did not start, or ended before it had an answer (${how})${message === '' ? '' : `: ${message}`}`
}

/** What the kubelet keeps of it: its last end while it runs again, as after a restart of the node. */
function endOf(status: Fields | undefined): Fields | undefined {
  const now = fieldsOf(status?.['state'])['terminated']
  if (isObject(now)) return now
  const before = fieldsOf(status?.['lastState'])['terminated']
  return isObject(before) ? before : undefined
}

/** These come before a container runs, and the first is there in any case. */
const STARTING: ReadonlySet<string> = new Set(['', 'PodInitializing', 'ContainerCreating'])

function troubleOf(group: string, container: Fields | undefined, pod: Fields): Outcome {
  const waits = fieldsOf(fieldsOf(container?.['state'])['waiting'])
  const reason = textOf(waits['reason'])
  if (!STARTING.has(reason))
    return { kind: 'failed', why: [group, reason, textOf(waits['message'])].filter((part) => part !== '').join(': ') }
  if (pod['phase'] === 'Failed') return { kind: 'failed', why: textOf(pod['message']) || textOf(pod['reason']) || 'the pod has failed' }
  const unscheduled = objectsIn(pod['conditions']).find(({ type, status }) => type === 'PodScheduled' && status === 'False')
  return unscheduled === undefined ? { kind: 'waiting' } : { kind: 'failed', why: `not scheduled: ${textOf(unscheduled['message'])}` }
}

/** A pod that is about to go does not count where there is another. */
function newestByNode(pods: readonly RawObject[]): ReadonlyMap<string, RawObject> {
  const rank = ({ metadata }: RawObject): string =>
    `${metadata['deletionTimestamp'] === undefined ? 1 : 0} ${textOf(metadata['creationTimestamp'])}`
  const found = new Map<string, RawObject>()
  for (const pod of pods) {
    const node = nodeOf(pod)
    const other = found.get(node)
    if (other === undefined || rank(other) < rank(pod)) found.set(node, pod)
  }
  return found
}

/** Before it is scheduled a DaemonSet's pod names its node in its affinity. */
function nodeOf(pod: RawObject): string {
  const spec = fieldsOf(pod['spec'])
  const named = textOf(spec['nodeName'])
  if (named !== '') return named
  const required = fieldsOf(fieldsOf(fieldsOf(spec['affinity'])['nodeAffinity'])['requiredDuringSchedulingIgnoredDuringExecution'])
  for (const term of objectsIn(required['nodeSelectorTerms']))
    for (const { key, values } of objectsIn(term['matchFields']))
      if (key === 'metadata.name' && Array.isArray(values)) return textOf(values[0])
  return ''
}

function isLinux({ metadata }: RawObject): boolean {
  const os = fieldsOf(metadata['labels'])['kubernetes.io/os']
  return os === undefined || os === 'linux'
}
