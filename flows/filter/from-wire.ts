// SPDX-License-Identifier: Apache-2.0
/** The filter of a gRPC request. Layer: flows. */
import { FLOW_ACTIONS, HIT_KINDS, REPORTERS } from '#lib/flows/flow.ts'
import {
  Action,
  MatchType,
  PolicyKind,
  Reporter,
  type Filter as FilterMessage,
  type PolicyMatch as PolicyMessage,
  type StringMatch,
} from '#lib/flows/wire/goldmane_pb.ts'
import { byNumber, toNumber } from '#lib/flows/wire/numbers.ts'
import { readPart } from '#lib/flows/wire/policy-match.ts'
import { FilterError } from './filter-error.ts'
import { NO_FILTER, type Filter, type PolicyMatch, type TextMatch } from './filter.ts'

const ACTION_OF = byNumber(FLOW_ACTIONS, Action)
const KIND_OF = byNumber(HIT_KINDS, PolicyKind)
const REPORTER_OF = byNumber(REPORTERS, Reporter)

/** Throws FilterError: what this version does not know it cannot find. */
export function filterOf(message: FilterMessage | undefined): Filter {
  if (message === undefined) return NO_FILTER
  return {
    sourceNames: textsOf(message.sourceNames),
    sourceNamespaces: textsOf(message.sourceNamespaces),
    destNames: textsOf(message.destNames),
    destNamespaces: textsOf(message.destNamespaces),
    protocols: textsOf(message.protocols),
    destPorts: message.destPorts.map(({ port }) => toNumber(port)),
    actions: message.actions.map((action, index) => known(ACTION_OF, action, `filter.actions[${index}]`)),
    policies: message.policies.map((policy, index) => policyOf(policy, `filter.policies[${index}]`)),
    reporter: knownOrAny(REPORTER_OF, message.reporter, 'filter.reporter'),
    pendingActions: message.pendingActions.map((action, index) => known(ACTION_OF, action, `filter.pending_actions[${index}]`)),
  }
}

export function policyOf({ kind, tier, namespace, name, action }: PolicyMessage, field: string): PolicyMatch {
  return {
    kind: knownOrAny(KIND_OF, kind, `${field}.kind`),
    tier: readPart(tier),
    namespace: readPart(namespace),
    name: readPart(name),
    action: knownOrAny(ACTION_OF, action, `${field}.action`),
  }
}

function textsOf(messages: readonly StringMatch[]): readonly TextMatch[] {
  return messages.map(({ value, type }) => ({ value, isFuzzy: type === MatchType.Fuzzy }))
}

function known<Name>(names: ReadonlyMap<number, Name>, number: number, field: string): Name {
  const name = names.get(number)
  if (name === undefined) throw new FilterError(field, `${number} is none of ${[...names.keys()].join(', ')}`)
  return name
}

/** 0: any. */
function knownOrAny<Name>(names: ReadonlyMap<number, Name>, number: number, field: string): Name | undefined {
  return number === 0 ? undefined : known(names, number, field)
}
