// SPDX-License-Identifier: Apache-2.0
/** Flows for people. Layer: cli (pure). */
import { NONE, type FlowEnd, type FlowUpdate, type PolicyHit } from '#lib/flows/flow.ts'
import { orDash } from '../text.ts'

export const HEADING = ['TIME', 'VERDICT', 'SOURCE', 'DESTINATION', 'PROTO', 'SERVICE', 'CONNS', 'PACKETS', 'BYTES', 'RULE']

/** A line of the table. CONNS: begun/live; PACKETS and BYTES: in/out, as the end that tells it has them. */
export function cells({ window }: FlowUpdate): readonly string[] {
  const { key, counts, start } = window
  return [
    timeText(start),
    verdictText(window),
    endText(key.source),
    portText(endText(key.dest), key.destPort),
    key.protocol,
    orDash(serviceText(window)),
    `${counts.started}/${counts.live}`,
    `${counts.packetsIn}/${counts.packetsOut}`,
    `${counts.bytesIn}/${counts.bytesOut}`,
    orDash(ruleText(key.enforced.at(-1))),
  ]
}

/** "10:00:15 shop/web-* > shop/db-0:5432 tcp denied at destination by Tier/default end (shop/db)" */
export function compactText({ window }: FlowUpdate): string {
  const { key, start } = window
  const rule = ruleText(key.enforced.at(-1))
  const by = rule === '' ? '' : ` by ${rule}`
  return `${timeText(start)} ${endText(key.source)} > ${portText(endText(key.dest), key.destPort)} ${key.protocol} ${verdictText(window)}${by}`
}

/** The end that tells it is the one whose rules were asked. */
function verdictText({ key }: FlowUpdate['window']): string {
  const where = key.reporter === 'Src' ? 'source' : 'destination'
  if (key.reason !== '') return `dropped at ${where}: ${key.reason}`
  return `${key.action === 'Allow' ? 'allowed' : 'denied'} at ${where}`
}

function endText({ namespace, name }: FlowEnd): string {
  return namespace === NONE ? name : `${namespace}/${name}`
}

function portText(end: string, port: number): string {
  return port === 0 ? end : `${end}:${port}`
}

function serviceText({ key: { service } }: FlowUpdate['window']): string {
  return service === undefined ? '' : `${service.namespace}/${service.name}:${service.port}`
}

function ruleText(hit: PolicyHit | undefined): string {
  if (hit === undefined) return ''
  const of = hit.namespace === '' ? hit.name : `${hit.namespace}/${hit.name}`
  if (hit.kind !== 'EndOfTier') return `${hit.kind} ${of} rule ${hit.rule}`
  const { trigger } = hit
  return `end of tier ${hit.tier}${trigger === undefined ? '' : ` (${trigger.kind} ${trigger.namespace === '' ? '' : `${trigger.namespace}/`}${trigger.name})`}`
}

/** Of the day, in this machine's zone. */
function timeText(seconds: number): string {
  return new Date(seconds * 1000).toTimeString().slice(0, 8)
}
