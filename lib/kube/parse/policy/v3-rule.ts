// SPDX-License-Identifier: Apache-2.0
/** Rules of netplane.io/v3 policies → model. Layer: lib/kube. */
import { atOnce, type Sliced } from '../../../base/async/slices.ts'
import { isV4 } from '../../../base/ip.ts'
import { ANYWHERE, ruleOf } from '../../../model/policy.ts'
import type { Action, Direction, IcmpMatch, Rule, Side } from '../../../model/policy.ts'
import { asRecord, FieldError, under } from '../fields.ts'
import type { Raw } from '../fields.ts'
import { rulesIn } from './common.ts'
import { peerSelector, serviceAt } from './v3-selectors.ts'
import { RULE_SHAPES } from '../../schema/v3-rules.ts'
import type { RuleValues, SideValues } from '../../schema/v3-rules.ts'

const ACTIONS: Readonly<Record<'Allow' | 'Deny' | 'Pass', Action>> = { Allow: 'allow', Deny: 'deny', Pass: 'pass' }

export interface RuleContext {
  readonly direction: Direction
  /** of the policy; empty: it is the whole cluster's */
  readonly namespace: string
  readonly refuse: (error: FieldError) => void
}

/** All rules of `direction`. Those that would log are left out and reported. */
export function v3Rules(spec: Raw, { direction, namespace, refuse }: RuleContext): Sliced<readonly Rule[]> {
  const shape = RULE_SHAPES[namespace === '' ? 'global' : 'namespaced'][direction]
  return rulesIn(spec, direction, (value, at) => {
    const action = shape.at(asRecord(value), 'action')
    if (action !== 'Log') return [ruleWith(shape.read(value), { at, action: ACTIONS[action], namespace })]
    refuse(new FieldError(`spec.${direction}[${at}].action`, 'Log is not supported in eBPF mode: the rule is left out'))
    return []
  })
}

function ruleWith(values: RuleValues, of: { readonly at: number; readonly action: Action; readonly namespace: string }): Rule {
  const { protocol, notProtocol } = values
  const source = under('source', () => sideWith(values.source, of.namespace))
  const destination = under('destination', () => sideWith(values.destination, of.namespace))
  return ruleOf(of.at, {
    action: of.action,
    ipVersion: ipVersionOf(values.ipVersion, [source, destination]),
    protocols: protocol === undefined ? undefined : [protocol],
    notProtocols: notProtocol === undefined ? [] : [notProtocol],
    icmp: icmpWith(values.icmp),
    notIcmp: icmpWith(values.notICMP),
    source,
    destination,
  })
}

function icmpWith(asked: RuleValues['icmp']): IcmpMatch | undefined {
  return asked?.type === undefined ? undefined : { type: asked.type, code: asked.code }
}

/** Prefixes of one family make the rule one of that family: "all but 10.0.0.0/8" does not mean the whole of IPv6. */
function ipVersionOf(said: number | undefined, sides: readonly Side[]): 4 | 6 | undefined {
  const families = new Set(sides.flatMap((side) => [...(side.nets ?? []), ...side.notNets]).map((net): 4 | 6 => (isV4(net.addr) ? 4 : 6)))
  if (families.size > 1) throw new FieldError('', 'must not have prefixes of both IPv4 and IPv6')
  const [implied] = families
  if (said === undefined) return implied
  if (said !== 4 && said !== 6) throw new FieldError('ipVersion', 'must be 4 or 6')
  if (implied !== undefined && implied !== said) throw new FieldError('ipVersion', `must be ${implied}, as that of the prefixes is`)
  return said
}

function sideWith(values: SideValues | undefined, namespace: string): Side {
  if (values === undefined) return ANYWHERE
  const { nets, notNets, ports, notPorts, notSelector, services } = values
  const side: Side = {
    ...ANYWHERE,
    selector: peerSelector(values, namespace),
    notSelector,
    nets: nets.length === 0 ? undefined : nets,
    notNets,
    ports: ports.length === 0 ? undefined : ports,
    notPorts,
  }
  if (services === undefined) return side
  return { ...side, services: [under('services', () => serviceAt(services, namespace))] }
}

/** Rules without a policy around them, as profiles have them. */
export function v3RulesAlone(
  spec: Raw,
  refuse: (error: FieldError) => void,
): { readonly ingress: readonly Rule[]; readonly egress: readonly Rule[] } {
  return {
    ingress: atOnce(v3Rules(spec, { direction: 'ingress', namespace: '', refuse })),
    egress: atOnce(v3Rules(spec, { direction: 'egress', namespace: '', refuse })),
  }
}
