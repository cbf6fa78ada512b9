// SPDX-License-Identifier: Apache-2.0
/** Truth tables against real connections: their pods on two nodes with agents, each asks each. Layer: test. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RequestAgent } from '../../lab/traffic/request-agent.ts'
import { Lab } from '../../lab/lab.ts'
import { endpointText, type Endpoint } from '../../lab/tools/address.ts'
import { waitFor } from '../../lab/wait.ts'
import { parseMetrics } from '../../demo/metrics.ts'
import { questions, tablesIn, type Question, type Step } from '../oracle/tables.ts'
import { manifestsOf, type StatePod } from '../oracle/world.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import { Manifests } from './cluster.ts'
import { programCommand } from '../../testkit/base/program.ts'

const METRICS_PORT = 9091
const SYNCS = 'netplane_service_sync_seconds_count'
/** Kinds of policy, their order, what they select and name; each in both families. */
const CASES = ['blocks-and-ranges', 'cluster-policies', 'old-admin-policies', 'sets-accounts-and-negations', 'tiers-in-order']
const TABLES = tablesIn('test/oracle/cases').filter(({ id }) => CASES.includes(id.replace(/-v[46]$/, '')))
/** of the first answers, and of those that count: a request waits for the second only where a rule denies */
const [SOON_MS, LATE_MS] = [400, 1500]

/** Every table has these pods, on these nodes, with addresses of one family or the other. */
const PODS = ['v4', 'v6'].map((family) => podsOf(TABLES.find(({ id }) => id.endsWith(family))?.steps[0]))
const NODES = { n1: ['192.168.7.1', 'fd00:168:7::1'], n2: ['192.168.7.2', 'fd00:168:7::2'] }
const NODE_PLACES = Object.keys(NODES).map((node) => `node/${node}`)

function podsOf(step: Step | undefined): readonly StatePod[] {
  return step?.state.pods ?? []
}

function keyOf({ ns, name }: StatePod): string {
  return `${ns}/${name}`
}

/** Both addresses, whatever the table has. */
function addressesOf(pod: StatePod): readonly string[] {
  return PODS.flatMap((pods) => pods.filter((other) => keyOf(other) === keyOf(pod)).map(({ ip }) => ip))
}

interface Asked {
  readonly from: string
  readonly pod: StatePod
  readonly to: Endpoint
  /** egress and ingress, "." for allowed */
  readonly want: string
}

/** What pods are asked by pods, over protocols that our tools speak. */
function* asked(step: Step): Iterable<Asked> {
  for (const [key, matrix] of Object.entries(step.expected)) {
    const proto = { TCP: 'tcp' as const, UDP: 'udp' as const }[key.split('/')[0] ?? '']
    if (proto === undefined) continue
    for (const { from, to, want } of questions(step, matrix))
      if (isPod(from) && isPod(to))
        yield { from: keyOf(from), pod: to, to: { proto, address: to.ip, port: Number(key.split('/')[1]) }, want }
  }
}

function isPod(end: Question['from']): end is StatePod {
  return 'ns' in end
}

/** The state, with what makes a cluster of it: routes to pods, servers that listen, and something whose arrival is
 * counted. */
function clusterOf({ state }: Step, number: number): object[] {
  const pods = state.pods.map((pod) => ({ ...pod, ips: addressesOf(pod), ports: [...(pod.ports ?? []), ...listening(pod)] }))
  const nodes = Object.entries(NODES).map(([name, addresses]) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: state.nodes?.find((node) => node.name === name)?.labels ?? {} },
    spec: {
      podCIDRs: pods.filter(({ node }) => node === name).flatMap(({ ips }) => ips.map((ip) => `${ip}/${ip.includes(':') ? 128 : 32}`)),
    },
    status: { addresses: addresses.map((address) => ({ type: 'InternalIP', address })) },
  }))
  const configuration = {
    apiVersion: 'netplane.io/v3',
    kind: 'FelixConfiguration',
    metadata: { name: 'default' },
    spec: { prometheusMetricsEnabled: true, prometheusMetricsPort: METRICS_PORT },
  }
  return [...manifestsOf({ ...state, pods, nodes: [] }), ...nodes, configuration, arrival(number)]
}

/** Ports that are asked for and have no name. */
function listening(pod: StatePod): NonNullable<StatePod['ports']> {
  const all = ['TCP/80', 'TCP/5432', 'TCP/8080', 'UDP/53'].map((text) => ({ protocol: text.slice(0, 3), port: Number(text.slice(4)) }))
  return all
    .filter(({ protocol, port }) => pod.ports?.some((own) => own.protocol === protocol && own.port === port) !== true)
    .map((port) => ({ ...port, name: '' }))
}

/** A slice that changed just now: agents count when they are done with it, and with all that came with it. */
function arrival(number: number): object {
  const changed = new Date(Date.UTC(2026, 0, 1) + 1000 * number).toISOString()
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      namespace: 'arrival',
      name: 'arrival',
      labels: { 'kubernetes.io/service-name': 'arrival' },
      annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': changed },
    },
    addressType: 'IPv4',
    ports: [],
    endpoints: [],
  }
}

class World implements AsyncDisposable {
  readonly #lab: Lab
  readonly #manifests: Manifests
  readonly #askers: ReadonlyMap<string, RequestAgent>
  #number = 1

  private constructor(lab: Lab, manifests: Manifests) {
    this.#lab = lab
    this.#manifests = manifests
    const places = [...lab.topology.pods.map(({ key }) => key), ...NODE_PLACES]
    this.#askers = new Map(places.map((place) => [place, new RequestAgent(lab, place)]))
  }

  static async up(step: Step): Promise<World> {
    const manifests = new Manifests(clusterOf(step, 0))
    const agentCommand = programCommand('agent')
    const lab = await Lab.up({ name: 'ttables', resources: manifests.dir, agentCommand })
    return new World(lab, manifests)
  }

  async load(step: Step): Promise<void> {
    const before = await this.#syncs()
    this.#manifests.write(clusterOf(step, this.#number++))
    const arrived = async (): Promise<true | undefined> =>
      (await this.#syncs()).every((count, at) => count > (before[at] ?? 0)) ? true : undefined
    expect(await waitFor(arrived, { timeoutMs: HANG_MS }), this.#lab.log('n1')).toBe(true)
  }

  /** How many arrivals each node is done with. */
  async #syncs(): Promise<readonly number[]> {
    const order = { do: 'get' as const, url: `http://127.0.0.1:${METRICS_PORT}/metrics` }
    const pages = await Promise.all(NODE_PLACES.map(async (place) => await this.#askers.get(place)?.order(order)))
    return pages.map((outcomes) => {
      const page = outcomes?.[0]
      return page !== undefined && 'text' in page ? (parseMetrics(page.text).get(SYNCS) ?? 0) : 0
    })
  }

  /** A line for each that was answered otherwise. A refusal comes from a pod, so that it was let through to it. */
  async wrong(all: readonly Asked[], timeoutMs: number): Promise<readonly string[]> {
    const answers = all.map(async ({ from, pod, to, want }) => {
      const ask = { do: 'ask' as const, to: endpointText(to), count: 1, timeoutMs, payload: 16, reply: 0 }
      const [outcome] = (await this.#askers.get(from)?.order(ask)) ?? []
      const got =
        outcome !== undefined && 'pod' in outcome ? outcome.pod : outcome !== undefined && 'failed' in outcome ? outcome.failed : 'nothing'
      return got === (want === '..' ? pod.name : 'TIMEOUT')
        ? []
        : [`${from} to ${keyOf(pod)}, ${endpointText(to)}: ${got} instead of ${want}`]
    })
    return (await Promise.all(answers)).flat()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const asker of this.#askers.values()) asker.close()
    await this.#lab.down()
    this.#manifests[Symbol.dispose]()
  }
}

describe('connections of truth tables', () => {
  const stack = new AsyncDisposableStack()
  let world: World | undefined

  beforeAll(async () => {
    const first = TABLES[0]?.steps[0]
    if (first !== undefined) world = stack.use(await World.up(first))
  })
  afterAll(() => stack.disposeAsync())

  test.each(TABLES)('$id [once]', async ({ steps }) => {
    for (const step of steps) {
      const all = [...asked(step)]
      expect(all.length).toBeGreaterThan(0)
      await world?.load(step)
      // flows of the step before, and neighbours that are not known yet
      const settled = async (): Promise<true | undefined> => ((await world?.wrong(all, SOON_MS))?.length === 0 ? true : undefined)
      await waitFor(settled, { timeoutMs: HANG_MS })
      expect(await world?.wrong(all, LATE_MS)).toEqual([])
    }
  })
})
