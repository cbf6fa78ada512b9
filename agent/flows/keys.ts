// SPDX-License-Identifier: Apache-2.0
/** What tells windows apart: the names of a flow's ends, of the service that was meant, and of rules.
 * Layer: agent/flows (pure). */
import { protocolText } from '#lib/base/ip.ts'
import type { FlowKey, FlowService, Reporter } from '#lib/flows/flow.ts'
import type { Direction } from '#lib/model/policy.ts'
import { hasPorts, ICMP, ICMPV6 } from '#lib/policy/packet.ts'
import type { CtTuple } from '../maps/flow-key.ts'
import type { FlowEvent } from '../maps/shapes.ts'
import type { Ends, KnownEnd } from './ends.ts'
import type { MeantServices } from './meant.ts'
import type { Tracer } from './trace.ts'

/** Numbers of rules, as programs record them; 0: none was asked. */
export interface RuleNumbers {
  readonly egress_rule: number
  readonly ingress_rule: number
  readonly staged_egress_rule: number
  readonly staged_ingress_rule: number
}

/** What is told of a flow. */
export type Told = RuleNumbers & Pick<FlowEvent, 'proto'> & { readonly sent: CtTuple; readonly flow: CtTuple }

/** What became of a packet: allowed, denied in a direction by a rule, or dropped for a reason. */
export type Fate = { readonly denied?: Direction; readonly reason?: string }

/** Its ends, and what became of it. */
export interface KeyParts {
  readonly source: KnownEnd
  readonly dest: KnownEnd
  readonly fate: Fate
}

export interface KeyOptions {
  readonly ends: Pick<Ends, 'find' | 'isNodes'>
  readonly meant: Pick<MeantServices, 'find'>
  /** of the world as it is now */
  readonly tracer: () => Pick<Tracer, 'hits'>
  /** "NetworkPolicy/shop/db ingress 0" */
  readonly ruleName: (number: number) => string | undefined
}

export class FlowKeys {
  readonly #options: KeyOptions

  constructor(options: KeyOptions) {
    this.#options = options
  }

  keyOf(told: Told, { source, dest, fate }: KeyParts, reporter: Reporter): FlowKey {
    const { proto, flow } = told
    const action = fate.denied === undefined && fate.reason === undefined ? 'Allow' : 'Deny'
    const rules = fate.reason === undefined ? this.#rulesOf(told, { end: reporter === 'Src' ? source : dest, reporter, action }) : NO_RULES
    return {
      source: { type: source.type, name: source.name, namespace: source.namespace },
      dest: { type: dest.type, name: dest.name, namespace: dest.namespace },
      destPort: hasPorts(proto) ? flow.dport : 0,
      service: this.#serviceOf(told),
      protocol: protocolName(proto),
      reporter,
      action,
      reason: fate.reason ?? '',
      ...rules,
    }
  }

  #serviceOf({ proto, sent }: Told): FlowService | undefined {
    const { ends, meant } = this.#options
    return hasPorts(proto) ? meant.find({ addr: sent.dst, port: sent.dport, proto }, ends.isNodes(sent.dst)) : undefined
  }

  #rulesOf(
    told: Told,
    { end, reporter, action }: { readonly end: KnownEnd; readonly reporter: Reporter; readonly action: 'Allow' | 'Deny' },
  ): Pick<FlowKey, 'enforced' | 'pending'> {
    const of = end.here
    const { tracer, ruleName } = this.#options
    const direction = reporter === 'Src' ? 'egress' : 'ingress'
    const [rule, staged] = reporter === 'Src' ? [told.egress_rule, told.staged_egress_rule] : [told.ingress_rule, told.staged_ingress_rule]
    const { src, sport, dst, dport } = told.flow
    const packet = { src, dst, protocol: told.proto, sport, dport, icmp: undefined }
    const asked = { of, direction, packet } as const
    return {
      enforced: tracer().hits({ ...asked, view: 'real', rule: ruleName(rule), action }),
      pending: tracer().hits({ ...asked, view: 'staged', rule: ruleName(staged), action: staged === rule ? action : undefined }),
    }
  }
}

const NO_RULES = { enforced: [], pending: [] } as const

/** As the API of flows writes them. */
function protocolName(proto: number): string {
  if (proto === ICMP) return 'icmp'
  if (proto === ICMPV6) return 'icmp6'
  return protocolText(proto).toLowerCase()
}
