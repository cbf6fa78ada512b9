// SPDX-License-Identifier: Apache-2.0
/** What has to be known before something is changed: of nodes that get agents, and of an endpoint that agents are to
 * use. Layer: operator. */
import { allInOrder } from '#lib/base/async/all-in-order.ts'
import type { Clock } from '#lib/base/clock.ts'
import { hostPort } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { clusterUid } from '#lib/api/identity.ts'
import type { ApiObject, Named } from '#lib/api/resource.ts'
import { PROBE_GROUPS, type Finding } from '#lib/preflight/findings.ts'
import { FELIX_CONFIGURATION, tunnelPort } from '#lib/render/felix-settings.ts'
import { imageOf } from '#lib/render/image.ts'
import { ENDPOINT_MAP, type Endpoint } from '#lib/render/input.ts'
import { ENDPOINT_PROOF, PREFLIGHT } from '#lib/render/preflight-pod.ts'
import { poolsToMake } from '../objects/pools.ts'
import { clusterFindings } from '../preflight/cluster-findings.ts'
import { readClusterObjects } from '../preflight/cluster-objects.ts'
import { Preflight, type PreflightStep } from '../preflight/preflight.ts'
import type { Cause } from '#lib/control/rollout.ts'
import { kubeProxyOf, type ClusterFactsReader } from './cluster-facts.ts'
import type { Asked } from './desired.ts'

interface Objects {
  readonly objects: ReadonlyMap<string, ApiObject>
}

export interface GateOptions {
  readonly client: Pick<ApiClient, 'get' | 'list' | 'pages'>
  readonly clock: Clock
  /** pods of the namespace that is installed in; of the others all */
  readonly view: Readonly<Record<'pods' | 'nodes' | 'pools' | 'felixConfigurations', Objects>>
  readonly options: { readonly namespace: string; readonly systemNamespace: string }
  readonly version: string
  /** of the preflight's objects; undefined: the operator's */
  readonly preflightName?: string
  readonly facts: ClusterFactsReader
}

export interface Question {
  readonly installation: ApiObject
  readonly asked: Asked
  readonly endpoint: Endpoint | undefined
}

interface Before extends Question {
  /** nothing of it is there yet: what is still to be made may be another */
  readonly isNew: boolean
}

export interface Proof {
  /** that agents are to use */
  readonly endpoint: Endpoint | undefined
  /** what it needs in the cluster */
  readonly objects: readonly ApiObject[]
  /** why it is not the one of the config map */
  readonly wrong: Cause | undefined
}

const API_SERVICE: Named = { apiVersion: 'v1', kind: 'Service', namespace: 'default', name: 'kubernetes' }
/** So long what was read of the cluster's objects counts. */
const READ_MS = 20_000

interface ReadCluster {
  /** ms of the clock */
  readonly at: number
  /** a later question is answered by it only where it is the same */
  readonly about: string
  readonly findings: readonly Finding[]
  /** those that a finding is about, or may be */
  readonly pods: readonly ApiObject[]
}

export class Gate {
  readonly #of: GateOptions
  readonly #preflight = new Preflight()
  #proof = new Preflight()
  #switch = new Preflight()
  #read: ReadCluster | undefined

  constructor(of: GateOptions) {
    this.#of = of
  }

  /** Before the first agent. */
  async preflight(question: Question, signal: AbortSignal): Promise<PreflightStep> {
    return await this.#look(this.#preflight, { ...question, isNew: true }, signal)
  }

  /** Before nodes leave kube-proxy: the same, and each time anew. */
  async switchPreflight(question: Question, signal: AbortSignal): Promise<PreflightStep> {
    return await this.#look(this.#switch, { ...question, isNew: false }, signal)
  }

  /** The next switch is another. */
  forgetSwitch(): void {
    this.#switch = new Preflight()
  }

  async #look(preflight: Preflight, question: Before, signal: AbortSignal): Promise<PreflightStep> {
    const { findings, pods: endpointPods } = await this.#readCluster(question, signal)
    const kind = { name: this.#of.preflightName ?? PREFLIGHT, groups: PROBE_GROUPS, clusterFindings: findings }
    return preflight.step({ ...(await this.#stepInput(question, signal)), endpointPods }, kind)
  }

  /** An endpoint is used once every node has reached this cluster by it; until then the one that is in use is. */
  async proveEndpoint({ used, ...question }: Question & { readonly used: Endpoint | undefined }, signal: AbortSignal): Promise<Proof> {
    const { endpoint } = question
    if (endpoint === undefined || textOf(endpoint) === textOf(used)) {
      // one that comes back later is tried again
      this.#proof = new Preflight()
      return { endpoint: used, objects: [], wrong: undefined }
    }
    const kind = { name: ENDPOINT_PROOF, groups: ['endpoint'] as const, clusterFindings: [] }
    const { isPassed, objects, state } = this.#proof.step({ ...(await this.#stepInput(question, signal)), endpointPods: [] }, kind)
    if (isPassed) return { endpoint, objects: [], wrong: undefined }
    const { degraded, progressing } = state
    const why = (degraded ?? progressing)?.message ?? ''
    const message = `agents ask the API server at ${textOf(used)} until every node has reached it at ${textOf(endpoint)}: ${why}`
    const known = degraded === undefined ? {} : { kind: `${textOf(endpoint)} ${degraded.kind ?? degraded.reason}` }
    return { endpoint: used, objects, wrong: { reason: 'EndpointUnproven', message, ...known } }
  }

  async #stepInput({ asked: { computed, pools }, endpoint, installation }: Question, signal: AbortSignal) {
    const { client, clock, view, options, version } = this.#of
    const { found, missing } = this.#pools(pools)
    const [service, cluster] = await allInOrder([client.get(API_SERVICE, { signal }), clusterUid(client, { signal })])
    return {
      installation: installation.metadata.uid ?? '',
      namespace: options.systemNamespace,
      image: imageOf(computed, version),
      computed,
      vxlanPort: tunnelPort(computed.platform, view.felixConfigurations.objects.get(`/${FELIX_CONFIGURATION.name}`)),
      endpoint,
      serviceAddresses: addressesOf(service),
      cluster,
      pools: [...found, ...missing],
      pods: [...view.pods.objects.values()],
      nodes: [...view.nodes.objects.values()],
      now: clock.now(),
      wall: clock.wall(),
    }
  }

  async #readCluster({ asked, endpoint, installation, isNew }: Before, signal: AbortSignal): Promise<Omit<ReadCluster, 'at' | 'about'>> {
    const { client, clock, view, options, facts } = this.#of
    const { uid, generation, annotations } = installation.metadata
    const now = clock.now()
    const about = JSON.stringify([uid, generation, annotations, endpoint, isNew])
    if (this.#read?.about === about && now - this.#read.at < READ_MS) return this.#read
    const [serverVersion, proxy, read] = await allInOrder([
      facts.serverVersion(signal),
      getOrNone(client, kubeProxyOf(asked.computed.platform), { signal }),
      readClusterObjects(client, { platform: asked.computed.platform, endpoint }, signal),
    ])
    const { found, missing } = this.#pools(asked.pools)
    const findings = clusterFindings({
      ...read,
      serverVersion,
      installation,
      computed: asked.computed,
      hasEndpoint: endpoint !== undefined,
      endpointMap: `${options.namespace}/${ENDPOINT_MAP}`,
      proxy,
      nodes: [...view.nodes.objects.values()],
      pools: [...found, ...missing],
      newPools: isNew ? missing : [],
      felixConfigurations: [...view.felixConfigurations.objects.values()],
    })
    this.#read = { at: now, about, findings, pods: read.pods }
    return this.#read
  }

  /** Those that there are, and those that are to be made. */
  #pools(asked: Question['asked']['pools']): Readonly<Record<'found' | 'missing', readonly ApiObject[]>> {
    const found = [...this.#of.view.pools.objects.values()]
    return { found, missing: poolsToMake(asked, found) }
  }
}

function addressesOf({ spec }: ApiObject): readonly string[] {
  const addresses: readonly unknown[] = isObject(spec) && Array.isArray(spec['clusterIPs']) ? spec['clusterIPs'] : []
  return addresses.filter((address) => typeof address === 'string')
}

/** "api.example.com:6443" */
function textOf(endpoint: Endpoint | undefined): string {
  if (endpoint === undefined) return "its service's address"
  return hostPort(endpoint.host, Number(endpoint.port))
}
