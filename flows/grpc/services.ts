// SPDX-License-Identifier: Apache-2.0
/** The services of goldmane.proto. Layer: flows. */
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { Code, ConnectError, createContextKey, type ConnectRouter, type HandlerContext } from '@connectrpc/connect'
import { WINDOW_SECONDS } from '#lib/flows/flow.ts'
import { flowMessage, receivedUpdate } from '#lib/flows/wire/codec.ts'
import {
  Action,
  FilterType,
  FlowCollector,
  FlowReceiptSchema,
  FlowResultSchema,
  Flows,
  PolicyKind,
  RuleDirection,
  SortBy,
  StatisticType,
  Statistics,
  StatisticsGroupBy,
  StatisticsResultSchema,
  type FilterHintsRequest,
  type FlowListRequest,
  type FlowResult,
  type FlowStreamRequest,
  type FlowUpdate,
  type StatisticsRequest,
} from '#lib/flows/wire/goldmane_pb.ts'
import { byNumber, toBig } from '#lib/flows/wire/numbers.ts'
import { FilterError } from '../filter/filter-error.ts'
import { filterOf, policyOf } from '../filter/from-wire.ts'
import { follow } from '../live/follow.ts'
import { HINTS, listHints, type Hint } from '../query/hints.ts'
import { listFlows, type Page, type Sort } from '../query/list.ts'
import { rangeOf, startOf, type Range } from '../query/range.ts'
import { MEASURES, statistics, type Amounts, type PolicyAmounts } from '../query/statistics.ts'
import type { Aggregator } from '../aggregator.ts'

/** Who is at the other end: an address without its port. */
export const PEER = createContextKey('', { description: 'peer' })

/** Whose flows the other end may tell; undefined: of any node, for it is this machine. */
export const NODE = createContextKey<string | undefined>(undefined, { description: 'node' })

/** Streams beside each other. */
const MOST_STREAMS = 100
const SORT_OF: ReadonlyMap<number, Sort> = new Map([
  [SortBy.Time, 'time'],
  [SortBy.DestName, 'dest_name'],
  [SortBy.DestNamespace, 'dest_namespace'],
  [SortBy.DestType, 'dest_type'],
  [SortBy.SourceName, 'source_name'],
  [SortBy.SourceNamespace, 'source_namespace'],
  [SortBy.SourceType, 'source_type'],
] as const)
const HINT_OF: ReadonlyMap<number, Hint> = new Map(HINTS.map((hint) => [FilterType[`FilterType${hint}`], hint]))
const MEASURE_OF = byNumber(MEASURES, StatisticType)

export function services(aggregator: Aggregator): (router: ConnectRouter) => void {
  const { store, feed, now } = aggregator
  const ask: typeof store.read = (asked) => store.read(asked)

  const timesOf = (from: bigint, to: bigint): Range => rangeOf({ from: Number(from), to: Number(to) }, now(), 'start_time_lt')

  async function* connect(updates: AsyncIterable<FlowUpdate>, context: HandlerContext) {
    const peer = context.values.get(PEER)
    using from = aggregator.collector(peer)
    const node = context.values.get(NODE)
    for await (const update of updates) {
      const told = update.flow?.node ?? ''
      if (node !== undefined && told !== '' && told !== node) throw new ConnectError(`${node} tells of node ${told}`, Code.PermissionDenied)
      from.take(receivedUpdate(update))
      yield RECEIPT
    }
  }

  async function list({ startTimeGte, startTimeLt, page, pageSize, sortBy, filter }: FlowListRequest) {
    const range = timesOf(startTimeGte, startTimeLt)
    if (sortBy.length > 1) throw new FilterError('sort_by', 'only one')
    const by = sortBy[0]?.sortBy ?? SortBy.Time
    const sort = SORT_OF.get(by)
    if (sort === undefined) throw new FilterError('sort_by', `${by} is not known`)
    const found = await listFlows(ask, { range, filter: filterOf(filter), page: pageOf(page, pageSize), sort })
    return {
      meta: metaOf(found),
      flows: found.items.map(({ id, window, last }) => {
        const flow = flowMessage(window)
        flow.endTime = toBig(last + WINDOW_SECONDS)
        return { id: toBig(id), flow }
      }),
    }
  }

  async function* stream({ startTimeGte, filter }: FlowStreamRequest, { signal }: HandlerContext): AsyncGenerator<FlowResult> {
    if (feed.followers >= MOST_STREAMS) throw new ConnectError(`${MOST_STREAMS} streams are open`, Code.ResourceExhausted)
    const from = startTimeGte === 0n ? undefined : startOf(Number(startTimeGte), now())
    const stop = AbortSignal.any([signal, aggregator.signal])
    for await (const step of follow({ store, feed, filter: filterOf(filter), from, most: Infinity, quietMs: QUIET_MS, signal: stop })) {
      if (step.kind === 'omitted') aggregator.count.omitted += step.count
      const flows = step.kind === 'kept' ? step.records : step.kind === 'came' ? step.told : []
      for (const { id, window } of flows) yield create(FlowResultSchema, { id: toBig(id), flow: flowMessage(window) })
    }
  }

  async function filterHints({ type, filter, startTimeGte, startTimeLt, page, pageSize }: FilterHintsRequest) {
    const hint = HINT_OF.get(type)
    if (hint === undefined) throw new FilterError('type', `${type} is none of ${[...HINT_OF.keys()].join(', ')}`)
    const range = timesOf(startTimeGte, startTimeLt)
    const found = await listHints(ask, { range, filter: filterOf(filter), page: pageOf(page, pageSize), hint })
    return { meta: metaOf(found), hints: found.items.map((value) => ({ value })) }
  }

  async function* amounts({ startTimeGte, startTimeLt, type, groupBy, policyMatch, timeSeries }: StatisticsRequest) {
    const measure = MEASURE_OF.get(type)
    if (measure === undefined) throw new FilterError('type', `${type} is not known`)
    const policy = policyMatch === undefined ? ANY_POLICY : policyOf(policyMatch, 'policy_match')
    const range = timesOf(startTimeGte, startTimeLt)
    const byRule = groupBy === StatisticsGroupBy.PolicyRule
    const found = await statistics(ask, { range, measure, byRule, policy, isSeries: timeSeries })
    for (const one of found) yield create(StatisticsResultSchema, { ...resultOf(one, timeSeries), type, groupBy })
  }

  /** What is wrong with a question is the client's error, and names the field; what is wrong here is for the log. */
  const errorOf = (thrown: unknown): unknown => {
    if (thrown instanceof FilterError) return new ConnectError(thrown.message, Code.InvalidArgument)
    if (!(thrown instanceof ConnectError)) aggregator.failed(thrown)
    return thrown
  }
  const answered =
    <I, O>(answer: (request: I) => Promise<O>) =>
    async (request: I): Promise<O> => {
      try {
        return await answer(request)
      } catch (thrown) {
        throw errorOf(thrown)
      }
    }
  const named = <I, O>(answer: (request: I, context: HandlerContext) => AsyncGenerator<O>) =>
    async function* (request: I, context: HandlerContext): AsyncGenerator<O> {
      try {
        yield* answer(request, context)
      } catch (thrown) {
        throw errorOf(thrown)
      }
    }

  return (router) => {
    router.service(FlowCollector, { connect: named(connect) })
    router.service(Flows, { list: answered(list), stream: named(stream), filterHints: answered(filterHints) })
    router.service(Statistics, { list: named(amounts) })
  }
}

const RECEIPT = create(FlowReceiptSchema)
const ANY_POLICY = { kind: undefined, tier: undefined, namespace: undefined, name: undefined, action: undefined }
/** Nothing is sent when nothing comes; the connection's own pings tell that it is there. */
const QUIET_MS = 60_000
const MOST_PAGE = 2 ** 31

function pageOf(page: bigint, size: bigint): Page {
  if (page < 0n || page > MOST_PAGE) throw new FilterError('page', `${page} is no page`)
  if (size < 0n || size > MOST_PAGE) throw new FilterError('page_size', `${size} is no size`)
  return { index: Number(page), size: Number(size) }
}

function metaOf({ totalPages, totalResults }: { readonly totalPages: number; readonly totalResults: number }) {
  return { totalPages: toBig(totalPages), totalResults: toBig(totalResults) }
}

function resultOf({ policy, rule, points }: PolicyAmounts, isSeries: boolean): MessageInitShape<typeof StatisticsResultSchema> {
  const of = (amount: (amounts: Amounts) => number): bigint[] => points.map(({ amounts }) => toBig(amount(amounts)))
  return {
    policy: {
      kind: PolicyKind[policy.kind],
      tier: policy.tier,
      namespace: policy.namespace,
      name: policy.name,
      ...(rule === undefined ? {} : { action: Action[rule.action], ruleIndex: toBig(rule.index) }),
    },
    direction: rule === undefined ? RuleDirection.Any : rule.reporter === 'Src' ? RuleDirection.Egress : RuleDirection.Ingress,
    allowedIn: of(({ Allow }) => Allow.in),
    allowedOut: of(({ Allow }) => Allow.out),
    deniedIn: of(({ Deny }) => Deny.in),
    deniedOut: of(({ Deny }) => Deny.out),
    passedIn: of(({ Pass }) => Pass.in),
    passedOut: of(({ Pass }) => Pass.out),
    x: isSeries ? points.map(({ start }) => toBig(start)) : [],
  }
}
