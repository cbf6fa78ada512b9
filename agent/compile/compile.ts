// SPDX-License-Identifier: Apache-2.0
/** Changes of objects → changes of the wanted data plane. Layer: agent/compile (pure).
 *
 * What one object contributes is a function of the snapshot alone. The compiler only remembers which owner holds a
 * contested key, and its last output about the node. So the work of a change is in proportion to the change. */
import { FRONTEND_EXTERNAL, RANGE_INSIDE } from '#lib/base/bpf-constants.ts'
import { formatAddr, type Addr } from '#lib/base/ip.ts'
import { sortedEntries } from '#lib/base/order.ts'
import { MOST_TOLD, type Rejected } from '#lib/base/result.ts'
import type { Sliced } from '#lib/base/async/slices.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import type { EndpointSlice } from '#lib/model/endpoint-slice.ts'
import { nodeAddress } from '#lib/model/node.ts'
import type { Pod } from '#lib/model/pod.ts'
import type { Service } from '#lib/model/service.ts'
import type { ObjectChange, Snapshot } from '#lib/model/snapshot.ts'
import { isLocalWorkload, podAddrs } from './addresses.ts'
import { KeyConflicts, type Claim } from './key-conflicts.ts'
import type { Configuration, DesiredChange, DesiredNode, Fragment, HealthCheck, Row } from './desired.ts'
import { healthCheckOf } from './services/health-checks.ts'
import { serverFailsafes } from './failsafes.ts'
import { setId } from './services/list-ids.ts'
import { nodeRows } from './node-rows.ts'
import { Attachments, compileNode } from './node-state.ts'
import { PolicyPipeline } from './policy/policy-pipeline.ts'
import { poolsIn, type Pools } from './pools.ts'
import { rangeRows } from './prefix-sets.ts'
import { serviceQuota } from './services/service-quota.ts'
import { claimKey, claimRank, contestedText, isContested } from './row-keys.ts'
import type { ContestedRow } from './row-keys.ts'
import { compileService } from './services/compile-service.ts'
import type { ServiceContext } from './services/compile-service.ts'
import { API_SERVER_RANK, apiEndpoints, apiServerClaims, apiServerRows, API_SERVERS, type ApiServersInput } from './api-server-addresses.ts'
import { API_SERVER, DirtyOwners } from './dirty-owners.ts'
import type { Surroundings } from './dirty-owners.ts'

export interface CompileInput extends Surroundings {
  readonly snapshot: Snapshot
  /** as in NodeInput; the same each time */
  readonly makesRoutes?: boolean
  /** as in PoolsInput; the same each time */
  readonly servesPods?: boolean
}

/** What one object wants, before it is known which owner holds contested keys. */
interface Draft {
  readonly rows: readonly Row[]
  /** addresses that another pod has */
  readonly lost?: Pod['lost']
  /** keys that no other owner may have, though there are no rows for them */
  readonly kept?: readonly Claim[]
  /** why there are none */
  readonly refused?: string
  /** whose rows they are */
  readonly service?: Service
}

/** An address or port that an object wants and another has. */
export interface Conflict {
  readonly rejected: Rejected
  /** it has others */
  readonly inPart?: true
  /** it would have been in the way to an API server */
  readonly atServer?: true
}

interface Lost {
  /** why it has nothing at all */
  readonly refused: string | undefined
  readonly rows: readonly ContestedRow[]
  readonly toPods: NonNullable<Pod['lost']>
  /** the owner has others */
  readonly isPart: boolean
}

const SERVER_KIND = API_SERVERS.slice(0, API_SERVERS.indexOf('/'))
const NOTHING: Draft = { rows: [] }

export class Compiler {
  readonly #node: string
  readonly #blocks: number | undefined
  #policy: PolicyPipeline
  #claims = new KeyConflicts()
  /** by owner: rows it wants and another has */
  #lost = new Map<string, Lost>()
  /** undefined: an owner was compiled since they were last told */
  #conflicts: readonly Conflict[] | undefined
  /** by key of the service */
  readonly #healthChecks = new Map<string, HealthCheck>()
  #healthChanges = 0
  readonly #attachments = new Attachments()
  #lastApiSlices: readonly EndpointSlice[] | undefined
  #last: { readonly input: CompileInput; readonly node: DesiredNode } | undefined

  /** `node` is this node's name; `blocks` of a line of rules are looked through by its programs. */
  constructor(node: string, blocks?: number) {
    this.#node = node
    this.#blocks = blocks
    this.#policy = new PolicyPipeline(node, blocks)
  }

  /** Rules as programs record them, and how much there is of policy. */
  get policy(): Pick<PolicyPipeline, 'ruleNames' | 'size' | 'cuts' | 'noRoom'> {
    return this.#policy
  }

  /** What programs and maps {@link compileAll} will ask for, which takes much longer. */
  configuration(input: CompileInput): Configuration {
    const { knobs, mapSizes } = this.#compileNode(input)
    return { knobs, mapSizes }
  }

  /** Compiles everything from scratch. */
  *compileAll(input: CompileInput): Sliced<DesiredChange> {
    this.#claims = new KeyConflicts()
    this.#lost = new Map()
    this.#healthChecks.clear()
    const fragments = yield* this.#fragments(this.#allOwners(input.snapshot), input)
    const node = this.#compileNode(input)
    // numbers of rules mean what they did until there are others
    const pipeline = new PolicyPipeline(this.#node, this.#blocks)
    const policy = yield* pipeline.all(input.snapshot)
    this.#policy = pipeline
    this.#last = { input, node }
    return { fragments: fragments.filter((fragment) => fragment.rows.length > 0), node, policy, complete: true }
  }

  /** What these changes, and other settings or addresses than last time, make different. The first time it is
   * everything. */
  *compileChanges(input: CompileInput, changes: readonly ObjectChange[]): Sliced<DesiredChange> {
    const last = this.#last
    if (last === undefined) return yield* this.compileAll(input)
    const touched = new DirtyOwners({ self: this.#node, snapshot: input.snapshot })
    touched.objects(changes)
    touched.surroundings(last.input, input)
    const before = this.#healthChanges
    const fragments = yield* this.#fragments(touched.owners, input)
    const node = touched.node || this.#healthChanges !== before ? this.#compileNode(input) : last.node
    const policy = yield* this.#policy.changes(changes, input.snapshot)
    this.#last = { input, node }
    return { fragments, node: deepEqual(last.node, node) ? undefined : node, policy, complete: false }
  }

  #compileNode(input: CompileInput): DesiredNode {
    const healthChecks = sortedEntries(this.#healthChecks).map(([, check]) => check)
    return compileNode({ ...input, pools: this.#pools(input), node: this.#node, healthChecks, attachments: this.#attachments })
  }

  /** Addresses and ports that objects want and others hold, at present. */
  *conflicts(): Sliced<readonly Conflict[]> {
    if (this.#conflicts !== undefined) return this.#conflicts
    const conflicts: Conflict[] = []
    for (const [ref, lost] of sortedEntries(this.#lost)) {
      conflicts.push(...this.#conflictsOf(ref, lost))
      yield
    }
    this.#conflicts = conflicts
    return conflicts
  }

  #conflictsOf(ref: string, { refused, rows, toPods, isPart }: Lost): readonly Conflict[] {
    const part = isPart ? { inPart: true as const } : {}
    const told = this.#told(rows)
    const more = 'more of its addresses and ports already belong to others'
    return [
      ...(refused === undefined ? [] : [{ rejected: { ref, path: '', reason: refused } }]),
      ...told.map((row) => ({ ...this.#conflictOf(ref, row), ...part })),
      ...(told.length === rows.length ? [] : [{ rejected: { ref, path: '', reason: more }, ...part }]),
      ...toPods.map(({ addr, to }) => ({
        rejected: { ref, path: '', reason: `${formatAddr(addr)} already belongs to Pod/${to}` },
        ...part,
      })),
    ]
  }

  /** As many as a reader can want. Those that an API server has come first: a condition fails by them. */
  #told(lost: readonly ContestedRow[]): readonly ContestedRow[] {
    if (lost.length <= MOST_TOLD) return lost
    const isServers = (row: ContestedRow): boolean => this.#claims.holder(claimKey(row)) === API_SERVERS
    const [servers, others] = [true, false].map((is) => lost.filter((row) => isServers(row) === is))
    return [...(servers ?? []), ...(others ?? [])].slice(0, MOST_TOLD)
  }

  #conflictOf(ref: string, row: ContestedRow): Conflict {
    const holder = this.#claims.holder(claimKey(row)) ?? ''
    if (holder !== API_SERVERS) return { rejected: { ref, path: '', reason: `${contestedText(row)} already belongs to ${holder}` } }
    const reason = `${contestedText(row)} is where an API server is asked: no Service may have it`
    return { rejected: { ref, path: '', reason }, atServer: true }
  }

  #allOwners(snapshot: Snapshot): Set<string> {
    const touched = new DirtyOwners({ self: this.#node, snapshot })
    touched.all()
    return touched.owners
  }

  /** One fragment for each of these owners, and for the other owners that gain or lose a key by it. */
  *#fragments(owners: Iterable<string>, input: CompileInput): Sliced<readonly Fragment[]> {
    const fragments = new Map<string, Fragment>()
    // a Set's iteration goes on to what is added meanwhile; an owner that is disturbed after its turn is taken out and
    // added again
    const queue = new Set(owners)
    for (const owner of queue) {
      queue.delete(owner)
      const { fragment, disturbed } = yield* this.#settle(owner, yield* this.#draft(owner, input))
      fragments.set(owner, fragment)
      for (const other of disturbed) queue.add(other)
      yield
    }
    return [...fragments.values()]
  }

  *#settle(owner: string, draft: Draft): Sliced<{ readonly fragment: Fragment; readonly disturbed: ReadonlySet<string> }> {
    this.#conflicts = undefined
    const contested = draft.rows.filter(isContested)
    const since = draft.service?.created
    const given = new Set(draft.service?.loadBalancerIPs)
    const claims = contested.map((row) => ({ key: claimKey(row), rank: rankOf(owner, row, given), since }))
    const { lost, disturbed } = yield* this.#claims.set(owner, [...claims, ...(draft.kept ?? [])])
    const toPods = draft.lost ?? []
    const { refused } = draft
    if (lost.size + toPods.length === 0 && refused === undefined) {
      this.#lost.delete(owner)
      return { fragment: { owner, rows: draft.rows }, disturbed }
    }
    const rows = contested.filter((row) => lost.has(claimKey(row)))
    if (owner !== API_SERVERS) this.#lost.set(owner, { refused, rows, toPods, isPart: rows.length < contested.length })
    return { fragment: { owner, rows: draft.rows.filter((row) => !isContested(row) || !lost.has(claimKey(row))) }, disturbed }
  }

  *#draft(owner: string, input: CompileInput): Sliced<Draft> {
    const slash = owner.indexOf('/')
    const key = owner.slice(slash + 1)
    switch (owner.slice(0, slash)) {
      case 'Service':
        return yield* this.#service(key, input)
      case 'Pod':
        return this.#pod(key, input)
      case 'IPPool': {
        const pool = input.snapshot.pools.get(key)
        return { rows: pool === undefined ? [] : rangeRows(setId(RANGE_INSIDE), [pool.cidr]) }
      }
      case SERVER_KIND:
        return this.#servers(input)
      default:
        return { rows: nodeRows(key, { ...input, pools: this.#pools(input), self: this.#node }) }
    }
  }

  *#service(key: string, { snapshot, settings }: CompileInput): Sliced<Draft> {
    const service = snapshot.services.get(key)
    const slices = key === API_SERVER ? this.#apiSlices(snapshot.slicesOf(key)) : snapshot.slicesOf(key)
    if (service === undefined) {
      this.#setHealthCheck(key, undefined)
      return NOTHING
    }
    const self = snapshot.nodes.get(this.#node)
    const context: ServiceContext = {
      node: this.#node,
      zone: self?.zone,
      selfAddresses: self?.addresses ?? [],
      mode: settings.services.mode,
      tunnelPort: settings.knobs.tunnelPort,
      selection: settings.services.backendSelection,
      excluded: settings.services.excluded,
      externalIPs: settings.services.externalIPs,
      otherNode: (name, v4) => {
        const node = name === this.#node ? undefined : snapshot.nodes.get(name)
        return node === undefined ? undefined : nodeAddress(node, v4)
      },
      // agents may need it
      most: key === API_SERVER ? undefined : serviceQuota(settings.mapSizes),
    }
    const compiled = yield* compileService(service, slices, context)
    const isServed = compiled.refused === undefined && context.mode === 'BPF'
    this.#setHealthCheck(key, isServed ? healthCheckOf(service, slices, this.#node) : undefined)
    if (key === API_SERVER) return { rows: [...compiled.rows, ...serverFailsafes(apiEndpoints(slices))], service }
    return { ...compiled, service }
  }

  #servers({ snapshot, settings, servers = [] }: CompileInput): Draft {
    const input: ApiServersInput = {
      servers,
      slices: this.#apiSlices(snapshot.slicesOf(API_SERVER)),
      service: snapshot.services.get(API_SERVER),
      self: snapshot.nodes.get(this.#node),
      settings: settings.nodes,
    }
    return { rows: apiServerRows(input), kept: apiServerClaims(input) }
  }

  /** We may reach the API server by its service: its last endpoints stay until there are others. */
  #apiSlices(slices: readonly EndpointSlice[]): readonly EndpointSlice[] {
    if (slices.some(({ endpoints }) => endpoints.some(({ state }) => state.ready || state.serving))) this.#lastApiSlices = slices
    return this.#lastApiSlices ?? slices
  }

  #pools(input: CompileInput): Pools {
    return poolsIn({ ...input, node: this.#node })
  }

  #setHealthCheck(key: string, check: HealthCheck | undefined): void {
    if (deepEqual(this.#healthChecks.get(key), check)) return
    this.#healthChanges++
    if (check === undefined) this.#healthChecks.delete(key)
    else this.#healthChecks.set(key, check)
  }

  #pod(key: string, input: CompileInput): Draft {
    const { snapshot, settings } = input
    const pod = snapshot.pods.get(key)
    if (pod === undefined || !isLocalWorkload(pod, this.#node)) return NOTHING
    const self = snapshot.nodes.get(this.#node)
    const place = { interfacePrefix: settings.interfacePrefix, makesRoutes: input.makesRoutes, pools: this.#pools(input), self }
    return { rows: podAddrs(pod, place), lost: pod.lost }
  }
}

/** The cluster address of default/kubernetes ranks before every claim that keeps an address free. */
function rankOf(owner: string, row: ContestedRow, given: ReadonlySet<Addr>): number {
  const isWay = owner === `Service/${API_SERVER}` && row.table === 'frontends' && (row.value.flags & FRONTEND_EXTERNAL) === 0
  return isWay ? API_SERVER_RANK : claimRank(row, given)
}
