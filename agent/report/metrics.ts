// SPDX-License-Identifier: Apache-2.0
/** The agent's metrics: their names, and where their values are read from when a client asks. Layer: agent. */
import type { KindFacts } from '#lib/api/watch/kind-shared.ts'
import { Metrics, type Sample } from '#lib/obs/metrics.ts'
import { processMetrics } from '#lib/obs/process-metrics.ts'
import type { Store } from '#lib/store/store.ts'
import { TABLES, type GenerationTables } from '../dataplane/generation-tables.ts'
import { counterTotal, namedCounters, type Counter } from '../maps/counters.ts'
import type { Flows } from '../flows/flows.ts'
import type { ConfigReport } from './config.ts'
import type { PolicyReport } from './policies.ts'
import type { PolicySize } from '../compile/policy/policy-size.ts'
import type { SourceReport } from './sources.ts'
import type { DataplaneSetup } from '../run/dataplane-setup.ts'

export interface MetricsInput {
  readonly node: string
  readonly version: string
  readonly store: Pick<Store, 'synced'>
  readonly book: Pick<SourceReport, 'list'>
  /** by kind, where objects come by kind; undefined where they do not */
  readonly sourceFacts?: () => ReadonlyMap<string, KindFacts> | undefined
  readonly settings: Pick<ConfigReport, 'counts' | 'waiting'>
  readonly showsProcess: () => boolean
  readonly policies: Pick<PolicyReport, 'counts'>
  /** undefined before anything is known */
  readonly policySize: () => PolicySize | undefined
  /** undefined: the kernel does not run our programs */
  readonly running: Pick<DataplaneSetup, 'dataplane' | 'sweep' | 'fill'> | undefined
  /** undefined as well */
  readonly flows: Pick<Flows, 'facts'> | undefined
  /** hands over what is to be called with the seconds each pass took */
  readonly onPass: (observe: (seconds: number) => void) => void
  /** the same with the seconds from what changed endpoints until the change was applied */
  readonly onSync: (observe: (seconds: number) => void) => void
}

const NO_LABELS = {}
const SYNC_SECONDS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300]
const PASS_SECONDS = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5]

export function agentMetrics(observed: MetricsInput): Metrics {
  const metrics = new Metrics()
  ofProcess(metrics, observed)
  ofSource(metrics, observed)
  ofSettings(metrics, observed)
  ofPackets(metrics, observed)
  ofTables(metrics, observed)
  ofPolicy(metrics, observed)
  ofFlows(metrics, observed)
  ofToldFlows(metrics, observed)
  ofWork(metrics, observed)
  return metrics
}

function ofProcess(metrics: Metrics, { node, version, store, book, showsProcess }: MetricsInput): void {
  metrics.gauge(
    { name: 'netplane_agent_info', help: 'Always 1; the labels name the node and the version of the agent.', labels: ['node', 'version'] },
    () => [{ labels: { node, version }, value: 1 }],
  )
  processMetrics(metrics, { program: 'agent', isShown: showsProcess })
  metrics.gauge({ name: 'netplane_synced', help: '1 once every source has delivered all its objects.', labels: [] }, () =>
    one(Number(store.synced)),
  )
  metrics.gauge(
    {
      name: 'netplane_source_available',
      help: '0 while the source cannot be read; its last good state stays in force.',
      labels: ['source'],
    },
    () => book.list().map(({ name, available }) => ({ labels: { source: name }, value: Number(available) })),
  )
  metrics.gauge(
    {
      name: 'netplane_source_unavailable_since_seconds',
      help: 'Time since which the source cannot be read, in seconds since 1970.',
      labels: ['source'],
    },
    () =>
      book
        .list()
        .flatMap(({ name, unavailableSince }) =>
          unavailableSince === undefined ? [] : [{ labels: { source: name }, value: unavailableSince / 1000 }],
        ),
  )
  metrics.gauge(
    {
      name: 'netplane_rejected_objects',
      help: 'Objects of the source that the agent does not use, or uses only in part.',
      labels: ['source'],
    },
    () => book.list().map(({ name, rejected }) => ({ labels: { source: name }, value: rejected })),
  )
}

function ofSource(metrics: Metrics, { sourceFacts }: MetricsInput): void {
  const byKind = (value: (facts: KindFacts) => number | undefined) => (): Sample[] =>
    [...(sourceFacts?.() ?? [])].flatMap(([kind, facts]) => {
      const known = value(facts)
      return known === undefined ? [] : [{ labels: { kind }, value: known }]
    })
  const labels = ['kind']
  metrics.gauge(
    { name: 'netplane_api_objects', help: 'Objects of the kind that the agent watches on the API server.', labels },
    byKind(({ objects }) => objects),
  )
  metrics.counter(
    {
      name: 'netplane_api_lists_total',
      help: 'Lists of the kind begun: the first, and one after each watch that could not be resumed.',
      labels,
    },
    byKind(({ lists }) => lists),
  )
  metrics.counter(
    { name: 'netplane_api_watches_total', help: 'Watches of the kind begun.', labels },
    byKind(({ watches }) => watches),
  )
  metrics.counter(
    { name: 'netplane_api_events_total', help: 'Events of the kind received by watches.', labels },
    byKind(({ events }) => events),
  )
  metrics.counter(
    {
      name: 'netplane_api_unreadable_total',
      help: 'Objects that could not be decoded from Protocol Buffers; the agent then asks for the kind as JSON.',
      labels,
    },
    byKind(({ unreadable }) => unreadable),
  )
  metrics.gauge(
    { name: 'netplane_api_last_event_time_seconds', help: 'Time of the last list or event of the kind, in seconds since 1970.', labels },
    byKind(({ lastEventAt }) => lastEventAt && lastEventAt / 1000),
  )
}

function ofSettings(metrics: Metrics, { settings }: MetricsInput): void {
  const help = 'Settings by the origin of their value; "last good": the value set now is invalid, and the one before stays in force.'
  metrics.gauge({ name: 'netplane_config_fields', help, labels: ['from'] }, () =>
    [...settings.counts()].map(([from, value]) => ({ labels: { from }, value })),
  )
  metrics.gauge(
    { name: 'netplane_config_waiting_fields', help: 'Changed settings that take effect when the agent starts again.', labels: [] },
    () => one(settings.waiting),
  )
}

/** Names come from the enums of the BPF side: DROP_NO_BACKEND is the reason "no_backend". */
function ofPackets(metrics: Metrics, { running }: MetricsInput): void {
  metrics.counter({ name: 'netplane_drops_total', help: 'Packets dropped, by reason.', labels: ['reason'] }, () =>
    counts(running?.dataplane.loaded, 'drop', 'reason'),
  )
  metrics.counter(
    { name: 'netplane_packets_total', help: 'Packets counted by the programs for events other than drops.', labels: ['event'] },
    () => counts(running?.dataplane.loaded, 'event', 'event'),
  )
}

function ofTables(metrics: Metrics, { running }: MetricsInput): void {
  const tables = (value: (loaded: GenerationTables, name: (typeof TABLES)[number]) => number) => (): Sample[] => {
    const loaded = running?.dataplane.loaded
    return loaded === undefined ? [] : TABLES.map((name) => ({ labels: { map: `np_${name}` }, value: value(loaded, name) }))
  }
  metrics.gauge(
    { name: 'netplane_map_rows', help: 'Rows that the map should have.', labels: ['map'] },
    tables((loaded, name) => loaded.tables[name].size),
  )
  metrics.gauge(
    { name: 'netplane_map_pending_rows', help: 'Rows that the agent has yet to write or to delete.', labels: ['map'] },
    tables((loaded, name) => {
      const { updates, deletes } = loaded.tables[name].pending
      return updates + deletes
    }),
  )
  metrics.gauge({ name: 'netplane_map_max_entries', help: 'Entries that the map can hold.', labels: ['map'] }, () =>
    [...(running?.dataplane.loaded?.shared.maps ?? [])].map(([map, handle]) => ({ labels: { map }, value: handle.info().maxEntries })),
  )
  const filled = tables((loaded, name) => loaded.tables[name].known)
  metrics.gauge({ name: 'netplane_map_entries', help: 'Entries in the map at the last count.', labels: ['map'] }, () => {
    const { sweep, fill } = running ?? {}
    const counted = new Map(fill?.entries)
    if (sweep?.census !== undefined) counted.set('np_ct', sweep.census.entries)
    return [...filled(), ...[...counted].map(([map, value]) => ({ labels: { map }, value }))]
  })
}

function ofPolicy(metrics: Metrics, { policies, policySize }: MetricsInput): void {
  metrics.gauge(
    {
      name: 'netplane_policies',
      help: 'Policies, tiers, sets, profiles and host endpoints by state; a closed one denies all traffic of the endpoints that it selects.',
      labels: ['state'],
    },
    () => [...policies.counts()].map(([state, value]) => ({ labels: { state }, value })),
  )
  const size = (name: keyof PolicySize) => (): Sample[] => {
    const all = policySize()
    return all === undefined ? [] : one(all[name])
  }
  metrics.gauge(
    { name: 'netplane_policy_endpoints', help: 'Endpoints of this node that at least one policy selects.', labels: [] },
    size('endpoints'),
  )
  metrics.gauge(
    {
      name: 'netplane_policy_identities',
      help: 'Identities: classes of addresses between which the policies of this node distinguish.',
      labels: [],
    },
    size('identities'),
  )
  metrics.gauge(
    { name: 'netplane_policy_rulesets', help: 'Distinct rulesets of the endpoints of this node.', labels: [] },
    size('rulesets'),
  )
  metrics.gauge(
    {
      name: 'netplane_policy_truncated_rule_lists',
      help: 'Rule lists longer than the programs can evaluate; they end in a deny.',
      labels: [],
    },
    size('truncatedRuleLists'),
  )
  metrics.gauge({ name: 'netplane_policy_rules', help: 'Rules of policies and profiles in all rulesets.', labels: [] }, size('rules'))
}

function ofFlows(metrics: Metrics, { running }: MetricsInput): void {
  metrics.gauge({ name: 'netplane_flows', help: 'Live flows at the last count.', labels: ['proto', 'state', 'translated'] }, () =>
    (running?.sweep.census?.counts() ?? []).map(({ proto, state, translated, flows }) => ({
      labels: { proto, state, translated: String(translated) },
      value: flows,
    })),
  )
  metrics.counter(
    {
      name: 'netplane_flows_swept_total',
      help: 'Entries that the agent deleted from the flow table: expired ones, and others when it was full.',
      labels: [],
    },
    () => one(running?.sweep.deleted ?? 0),
  )
}

function ofToldFlows(metrics: Metrics, { flows }: MetricsInput): void {
  const gauge = (name: 'readers' | 'connections' | 'keys', help: string): void => {
    metrics.gauge({ name: `netplane_flow_${name}`, help, labels: [] }, () => one(flows?.facts[name] ?? 0))
  }
  gauge('readers', 'Readers of flows; programs count and tell while there is one, and for 60 s after the last.')
  gauge('connections', 'Connections that the agent keeps count of for readers of flows.')
  gauge('keys', 'Pairs of ends, ports and rules with such connections.')
  metrics.counter(
    {
      name: 'netplane_flow_records_lost_total',
      help: 'Records of flows that were lost: events that were not read in time, and windows that no aggregator took in time.',
      labels: ['what'],
    },
    () => [
      { labels: { what: 'events' }, value: flows?.facts.lost ?? 0 },
      { labels: { what: 'windows' }, value: flows?.facts.untaken ?? 0 },
    ],
  )
}

function ofWork(metrics: Metrics, { running, onPass, onSync }: MetricsInput): void {
  const totals = (value: 'done' | 'failed') => (): Sample[] =>
    [...(running?.dataplane.phases.totals ?? [])].map(([part, total]) => ({ labels: { part }, value: total[value] }))
  metrics.counter({ name: 'netplane_changes_total', help: 'Changes made in the kernel, by part.', labels: ['part'] }, totals('done'))
  metrics.counter(
    { name: 'netplane_failures_total', help: 'Changes that the kernel refused, by part.', labels: ['part'] },
    totals('failed'),
  )
  metrics.counter(
    {
      name: 'netplane_repairs_total',
      help: 'Drift found and repaired: kernel state that something other than the agent had changed.',
      labels: ['part'],
    },
    () => [...(running?.dataplane.repairs ?? [])].map(([part, value]) => ({ labels: { part }, value })),
  )
  metrics.gauge(
    {
      name: 'netplane_host_device',
      help: '1 for each network device that the host programs run on, 0 for one that the agent refuses; the label gives the reason.',
      labels: ['device', 'reason'],
    },
    () =>
      (running?.dataplane.devices.list() ?? []).map(({ iface, use, reason }) => ({
        labels: { device: iface.name, reason },
        value: Number(use === 'host'),
      })),
  )
  metrics.gauge({ name: 'netplane_attached_hooks', help: 'Hooks that run the desired program.', labels: [] }, () =>
    one(running?.dataplane.attached ?? 0),
  )
  onSync(
    metrics.histogram(
      {
        name: 'netplane_service_sync_seconds',
        help: "Seconds from a change of a service's endpoints to its apply; only slices with a trigger time are measured.",
      },
      SYNC_SECONDS,
    ),
  )
  onPass(metrics.histogram({ name: 'netplane_apply_seconds', help: 'Seconds that an apply took.' }, PASS_SECONDS))
}

function one(value: number): Sample[] {
  return [{ labels: NO_LABELS, value }]
}

function counts(loaded: GenerationTables | undefined, kind: Counter['kind'], label: string): Sample[] {
  const map = loaded?.shared.maps.get('np_counters')
  if (loaded === undefined || map === undefined) return []
  return namedCounters(loaded.counters)
    .filter((counter) => counter.kind === kind)
    .map(({ name, slot }) => ({ labels: { [label]: name }, value: counterTotal(map, slot) }))
}
