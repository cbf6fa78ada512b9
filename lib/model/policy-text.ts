// SPDX-License-Identifier: Apache-2.0
/** Policies as lines that one can read in a review. Layer: lib/model. */
import { formatCidr, protocolText } from '../base/ip.ts'
import type { Policy, PortMatch, Rule, Side } from './policy.ts'
import { formatSelector } from './selector/text.ts'

/** What it is, then one line for each rule. */
export function policyText(policy: Policy): readonly string[] {
  const { tier, order, scope, staged } = policy
  const flags = [scope === 'normal' ? '' : scope, staged === undefined ? '' : `staged ${staged}`, policy.closed === true ? 'closed' : '']
  return [
    [`${tier} ${order}`, ...flags.filter((flag) => flag !== ''), formatSelector(policy.subject)].join(', '),
    ...rulesText('ingress', policy.ingress),
    ...rulesText('egress', policy.egress),
  ]
}

function rulesText(direction: string, rules: readonly Rule[] | undefined): readonly string[] {
  return rules === undefined ? [] : rules.length === 0 ? [`${direction}: none`] : rules.map((rule) => `${direction} ${ruleText(rule)}`)
}

export function ruleText(rule: Rule): string {
  return `${rule.at}${rule.name === undefined ? '' : ` ${rule.name}`}: ${conditionsText(rule)}`
}

/** "allow tcp from app == "web" to ports 80": what it does and of what, without its place. */
export function conditionsText(rule: Rule): string {
  const parts = [
    rule.action,
    rule.ipVersion === undefined ? '' : `v${rule.ipVersion}`,
    rule.protocols === undefined ? '' : protocolsText(rule.protocols),
    rule.notProtocols.length === 0 ? '' : `not ${protocolsText(rule.notProtocols)}`,
    rule.icmp === undefined ? '' : `type ${rule.icmp.type}/${rule.icmp.code ?? '*'}`,
    rule.notIcmp === undefined ? '' : `not type ${rule.notIcmp.type}/${rule.notIcmp.code ?? '*'}`,
    sideText('from', rule.source),
    sideText('to', rule.destination),
  ]
  return parts.filter((part) => part !== '').join(' ')
}

/** Numbers without a name of ours are "protocol 4". */
function protocolsText(numbers: readonly number[]): string {
  return numbers.map((number) => protocolText(number).toLowerCase().replace(/^\d/, 'protocol $&')).join()
}

function sideText(word: string, side: Side): string {
  const list = (name: string, values: readonly string[] | undefined): string =>
    values === undefined || values.length === 0 ? '' : `${name} ${values.join(' ')}`
  const parts = [
    side.selector === undefined ? '' : formatSelector(side.selector),
    side.notSelector === undefined ? '' : `not [${formatSelector(side.notSelector)}]`,
    side.nodes === undefined ? '' : `nodes ${formatSelector(side.nodes)}`,
    list('nets', side.nets?.map(formatCidr)),
    list('not nets', side.notNets.map(formatCidr)),
    list('ports', side.ports?.map(portText)),
    list('not ports', side.notPorts.map(portText)),
    list(
      'services',
      side.services?.map((service) => `${service.namespace}/${service.name}`),
    ),
  ].filter((part) => part !== '')
  return parts.length === 0 ? '' : [word, ...parts].join(' ')
}

function portText(match: PortMatch): string {
  if ('name' in match) return `"${match.name}"`
  return match.from === match.to ? String(match.from) : `${match.from}-${match.to}`
}
