// SPDX-License-Identifier: Apache-2.0
/** Policies as lines that one can read in a review. Layer: test. */
import { formatCidr } from '#lib/base/ip.ts'
import { formatSelector } from '#lib/model/selector-text.ts'
import type { Policy, PortMatch, Rule, Side } from '#lib/model/policy.ts'

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
  const parts = [
    `${rule.at}${rule.name === undefined ? '' : ` ${rule.name}`}: ${rule.action}`,
    rule.ipVersion === undefined ? '' : `v${rule.ipVersion}`,
    rule.protocols === undefined ? '' : `protocol ${rule.protocols.join()}`,
    rule.notProtocols.length === 0 ? '' : `not protocol ${rule.notProtocols.join()}`,
    rule.icmp === undefined ? '' : `icmp ${rule.icmp.type}/${rule.icmp.code ?? '*'}`,
    rule.notIcmp === undefined ? '' : `not icmp ${rule.notIcmp.type}/${rule.notIcmp.code ?? '*'}`,
    sideText('from', rule.source),
    sideText('to', rule.destination),
  ]
  return parts.filter((part) => part !== '').join(' ')
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
