// SPDX-License-Identifier: Apache-2.0
/** The agent's metrics: their names, and where their values are read from when a client asks. Layer: agent. */
import type { KindFacts } from '#lib/api/watch/kind-shared.ts'
import { Metrics, type Sample } from '#lib/obs/metrics.ts'
import type { Store } from '#lib/store/store.ts'
import { TABLES, type GenerationTables } from '../dataplane/generation-tables.ts'
import { counterTotal, namedCounters, type Counter } from '../maps/counters.ts'
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
  ofWork(metrics, observed)
  return metrics
}

function ofProcess(metrics: Metrics, { node, version, store, book, showsProcess }: MetricsInput): void {
  const own = (value: () => number) => (): Sample[] => (showsProcess() ? one(value()) : [])
  metrics.gauge({ name: 'netplane_agent_info', help: 'Always 1: which agent this is.', labels: ['node', 'version'] }, () => [
    { labels: { node, version }, value: 1 },
  ])
  metrics.counter(
    { name: 'process_cpu_seconds_total', help: 'CPU time of the agent.', labels: [] },
    own(() => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    }),
  )
  metrics.gauge(
    { name: 'process_resident_memory_bytes', help: 'Resident memory of the agent.', labels: [] },
    own(() => process.memoryUsage.rss()),
  )
  metrics.gauge(
    { name: 'process_start_time_seconds', help: 'When the agent started, since 1970.', labels: [] },
    own(() => performance.timeOrigin / 1000),
  )
  metrics.gauge({ name: 'netplane_synced', help: '1 once every source has said everything it knows.', labels: [] }, () =>
    one(Number(store.synced)),
  )
  metrics.gauge(
    { name: 'netplane_source_available', help: '0 while the source cannot be read: its last good state is in force.', labels: ['source'] },
    () => book.list().map(({ name, available }) => ({ labels: { source: name }, value: Number(available) })),
  )
  metrics.gauge(
    { name: 'netplane_source_unavailable_since_seconds', help: 'Since when the source cannot be read, since 1970.', labels: ['source'] },
    () =>
      book
        .list()
        .flatMap(({ name, unavailableSince }) =>
          unavailableSince === undefined ? [] : [{ labels: { source: name }, value: unavailableSince / 1000 }],
        ),
  )
  metrics.gauge(
    { name: 'netplane_rejected_objects', help: 'Things in the source that are not used, or only in part.', labels: ['source'] },
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
    { name: 'netplane_api_objects', help: 'Objects that the API server has, of those that are asked for.', labels },
    byKind(({ objects }) => objects),
  )
  metrics.counter(
    {
      name: 'netplane_api_lists_total',
      help: 'Lists of a kind begun: the first, and those after the place to go on from was lost.',
      labels,
    },
    byKind(({ lists }) => lists),
  )
  metrics.counter(
    { name: 'netplane_api_watches_total', help: 'Watches of a kind begun.', labels },
    byKind(({ watches }) => watches),
  )
  metrics.counter(
    { name: 'netplane_api_events_total', help: 'Changes of objects that watches told.', labels },
    byKind(({ events }) => events),
  )
  metrics.counter(
    {
      name: 'netplane_api_unreadable_total',
      help: 'What could not be read as Protocol Buffers: from then on the kind comes as JSON.',
      labels,
    },
    byKind(({ unreadable }) => unreadable),
  )
  metrics.gauge(
    { name: 'netplane_api_last_event_time_seconds', help: 'When the last of these came, since 1970.', labels },
    byKind(({ lastEventAt }) => lastEventAt && lastEventAt / 1000),
  )
}

function ofSettings(metrics: Metrics, { settings }: MetricsInput): void {
  const help = 'Settings by where their value is from; "last good": who has a say now says what cannot be used.'
  metrics.gauge({ name: 'netplane_config_fields', help, labels: ['from'] }, () =>
    [...settings.counts()].map(([from, value]) => ({ labels: { from }, value })),
  )
  metrics.gauge(
    { name: 'netplane_config_waiting_fields', help: "Changed settings that wait for the agent's next start.", labels: [] },
    () => one(settings.waiting),
  )
}

/** Names come from the enums of the BPF side: DROP_NO_BACKEND is the reason "no_backend". */
function ofPackets(metrics: Metrics, { running }: MetricsInput): void {
  metrics.counter({ name: 'netplane_drops_total', help: 'Packets dropped, by reason.', labels: ['reason'] }, () =>
    counts(running?.dataplane.loaded, 'drop', 'reason'),
  )
  metrics.counter({ name: 'netplane_packets_total', help: 'What the programs counted besides drops.', labels: ['event'] }, () =>
    counts(running?.dataplane.loaded, 'event', 'event'),
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
    { name: 'netplane_map_pending_rows', help: 'Rows still to be written or removed.', labels: ['map'] },
    tables((loaded, name) => {
      const { updates, deletes } = loaded.tables[name].pending
      return updates + deletes
    }),
  )
  metrics.gauge({ name: 'netplane_map_max_entries', help: 'Room in the map.', labels: ['map'] }, () =>
    [...(running?.dataplane.loaded?.shared.maps ?? [])].map(([map, handle]) => ({ labels: { map }, value: handle.info().maxEntries })),
  )
  const filled = tables((loaded, name) => loaded.tables[name].known)
  metrics.gauge({ name: 'netplane_map_entries', help: 'Entries in the map, as last counted.', labels: ['map'] }, () => {
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
      help: 'Policies, and what they rest on (tiers, sets, profiles, host endpoints), by what became of them: closed ones deny everything to whom they select.',
      labels: ['state'],
    },
    () => [...policies.counts()].map(([state, value]) => ({ labels: { state }, value })),
  )
  const size = (name: keyof PolicySize) => (): Sample[] => {
    const all = policySize()
    return all === undefined ? [] : one(all[name])
  }
  metrics.gauge(
    { name: 'netplane_policy_endpoints', help: 'Endpoints of this node that some policy is for.', labels: [] },
    size('endpoints'),
  )
  metrics.gauge(
    { name: 'netplane_policy_identities', help: 'Classes of addresses that the policies of this node tell apart.', labels: [] },
    size('identities'),
  )
  metrics.gauge(
    { name: 'netplane_policy_sets', help: 'Different lines of rules that endpoints of this node have.', labels: [] },
    size('sets'),
  )
  metrics.gauge(
    {
      name: 'netplane_policy_cut_lines',
      help: 'Lines of rules, each of one or more endpoints of this node, that are longer than programs look: they end in a deny.',
      labels: [],
    },
    size('cutLines'),
  )
  metrics.gauge({ name: 'netplane_policy_rules', help: 'Rules of policies and profiles in these lines.', labels: [] }, size('rules'))
}

function ofFlows(metrics: Metrics, { running }: MetricsInput): void {
  metrics.gauge({ name: 'netplane_flows', help: 'Live flows, as last counted.', labels: ['proto', 'state', 'translated'] }, () =>
    (running?.sweep.census?.counts() ?? []).map(({ proto, state, translated, flows }) => ({
      labels: { proto, state, translated: String(translated) },
      value: flows,
    })),
  )
  metrics.counter({ name: 'netplane_flows_swept_total', help: 'Expired entries taken out of the flow table.', labels: [] }, () =>
    one(running?.sweep.deleted ?? 0),
  )
}

function ofWork(metrics: Metrics, { running, onPass, onSync }: MetricsInput): void {
  const totals = (value: 'done' | 'failed') => (): Sample[] =>
    [...(running?.dataplane.phases.totals ?? [])].map(([part, total]) => ({ labels: { part }, value: total[value] }))
  metrics.counter({ name: 'netplane_changes_total', help: 'Changes made in the kernel.', labels: ['part'] }, totals('done'))
  metrics.counter(
    { name: 'netplane_failures_total', help: 'Attempted changes that the kernel refused.', labels: ['part'] },
    totals('failed'),
  )
  metrics.counter(
    { name: 'netplane_repairs_total', help: 'How often something was found other than the agent had left it.', labels: ['part'] },
    () => [...(running?.dataplane.repairs ?? [])].map(([part, value]) => ({ labels: { part }, value })),
  )
  metrics.gauge(
    {
      name: 'netplane_host_device',
      help: '1 for each network device that was chosen for the host programs, 0 for one that would be but is refused; with the reason.',
      labels: ['device', 'reason'],
    },
    () =>
      (running?.dataplane.devices.list() ?? []).map(({ iface, use, reason }) => ({
        labels: { device: iface.name, reason },
        value: Number(use === 'host'),
      })),
  )
  metrics.gauge({ name: 'netplane_attached_hooks', help: 'Hooks that run the wanted program.', labels: [] }, () =>
    one(running?.dataplane.attached ?? 0),
  )
  onSync(
    metrics.histogram(
      {
        name: 'netplane_service_sync_seconds',
        help: "Time from what changed a service's endpoints until the change was applied, where the slice tells when that was.",
      },
      SYNC_SECONDS,
    ),
  )
  onPass(metrics.histogram({ name: 'netplane_apply_seconds', help: 'Time from the start of an apply to its end.' }, PASS_SECONDS))
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
