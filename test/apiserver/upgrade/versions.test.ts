// SPDX-License-Identifier: Apache-2.0
/** Versions and ways of installing them, each upgraded by one command in a real API server: nothing is lost, addresses
 * stay, edits are carried. MATRIX=whole: all of them, as `make soak` has it. Layer: test. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { systemClock } from '#lib/base/clock.ts'
import { isWithin, parseAddr, parseCidr } from '#lib/base/ip.ts'
import { IP_BLOCK } from '#lib/kube/objects/ip-block.ts'
import { NODE_NETWORK } from '#lib/kube/objects/node-network.ts'
import type { Found } from '#upgrade/found/found.ts'
import { verdictReport } from '#upgrade/storage/verdicts.ts'
import { STORED_KINDS } from '#upgrade/stored/kinds.ts'
import { API_VERSION, STORED_API_VERSION, type Outcome } from '#upgrade/stored/outcome.ts'
import { listAt, numberAt, textAt } from '../../../lab/raw.ts'
import { ofMatrix } from '../../support/steady/matrix.ts'
import { EVERY, isOperators, STORED_BY } from '../../upgrade/found/installed.ts'
import { common } from '../../upgrade/stored/installation.ts'
import { OldCluster } from './old-cluster.ts'
import { agentsOf, EDITED_REQUESTS, NODES, plantForm } from './plant-forms.ts'
import { IMAGE, upgradeRun, WHOLE_MS } from './upgrade-run.ts'

const BUILD_MS = 30 * 60_000

/** In the gate an old version, by a way in which another plugin gives addresses. */
const CELLS = ofMatrix(EVERY, [['3.15', 'canal']])

/** Parts of what blocks say. */
const IN_BLOCKS = /^(BlockAffinity|IPAMHandle|IPAMConfig)$/

interface Plan {
  readonly found: Pick<Found, 'environment'>
  readonly refusals: readonly unknown[]
  readonly outcomes: readonly Outcome[]
}

async function storedIn(client: ApiClient): Promise<readonly ApiObject[]> {
  const lists = STORED_KINDS.map(({ kind, plural }) => client.list({ apiVersion: STORED_API_VERSION, kind, plural }))
  return (await Promise.all(lists)).flat()
}

/** What became of it: "there", "left", or what is missing. */
async function fateOf(client: ApiClient, outcomes: readonly Outcome[], { kind, metadata }: ApiObject): Promise<string> {
  const { namespace = '', name } = metadata
  const text = `${kind} ${namespace}/${name}`
  const outcome = outcomes.find(({ of }) => of?.kind === kind && of.namespace === namespace && of.name === name)
  if (outcome === undefined) return IN_BLOCKS.test(kind) ? 'left' : `${text} is not in the plan`
  if (!('object' in outcome)) return outcome.kind === 'left' ? 'left' : `${text} is ${outcome.kind}`
  const { metadata: wanted } = outcome.object
  const found = await getOrNone(client, {
    apiVersion: API_VERSION,
    kind: outcome.object.kind,
    namespace: wanted.namespace,
    name: wanted.name,
  })
  return found === undefined ? `${text} is not there` : 'there'
}

/** "10.244.0.5 web of a" */
async function podAddresses(client: ApiClient): Promise<readonly string[]> {
  const blocks = await client.list(IP_BLOCK)
  const texts = blocks.flatMap((block) =>
    listAt(block, 'spec.allocations').flatMap((one) => {
      const [address, pod] = ['address', 'pod'].map((name) => textAt(one, name) ?? '')
      return pod === '' ? [] : [`${address} ${pod} of ${textAt(block, 'spec.node')}`]
    }),
  )
  return texts.sort()
}

/** By its node's NodeNetwork. */
function isReached(pod: ApiObject, networks: readonly ApiObject[]): boolean {
  const network = networks.find(({ metadata }) => metadata.name === textAt(pod, 'spec.nodeName'))
  const ranges = ['spec.blocks', 'spec.podCIDRs'].flatMap((path) => listAt(network, path)).map(String)
  return isWithin(ranges.map(parseCidr), parseAddr(textAt(pod, 'status.podIP') ?? ''))
}

describe.each(CELLS)('%s by %s', (version, form) => {
  const agents = agentsOf(form)
  let old: OldCluster
  let client: ApiClient
  let uid: string | undefined
  let plan: Plan

  beforeAll(async () => {
    old = await OldCluster.start((cluster) => plantForm(cluster, version, form))
    client = old.client
    uid = (await client.get(agents)).metadata.uid
  }, BUILD_MS)

  afterAll(async () => {
    await old[Symbol.asyncDispose]()
  })

  test(
    'nothing is in the way, and the upgrade comes to its end',
    async () => {
      plan = JSON.parse((await old.netplanectl('upgrade', 'plan', '--json')).output) as Plan
      expect(plan.refusals).toEqual([])
      const { code, output } = await upgradeRun(old, form)
      expect(output).toContain('The upgrade is done.')
      expect(code).toBe(0)
    },
    WHOLE_MS,
  )

  test('every object that was stored is there in this version, or was left by the plan', async () => {
    const stored = await storedIn(client)
    expect(stored).toHaveLength(common(version, STORED_BY[form]).objects.length)
    const fates = await Promise.all(stored.map((one) => fateOf(client, plan.outcomes, one)))
    expect(fates.filter((fate) => fate !== 'there' && fate !== 'left')).toEqual([])
    expect(fates.filter((fate) => fate === 'there').length).toBeGreaterThan(0)
  })

  test('verdicts on all pairs of endpoints, settings and pools are as they were', async () => {
    const { namespace = '' } = agents
    const options = { client, clock: systemClock, namespace, environment: plan.found.environment, version: '3.31.5' }
    const { pairs, differences } = await verdictReport(options, AbortSignal.timeout(60_000))
    expect(differences).toEqual([])
    expect(pairs).toBeGreaterThan(0)
  })

  test('every pod has its address, in a range of its node', async () => {
    const isChained = form === 'canal' || form === 'policy-only'
    expect(await podAddresses(client)).toEqual(isChained ? [] : ['10.244.0.5 web of a', '10.244.0.70 db of b'])
    const networks = await client.list(NODE_NETWORK)
    expect(networks.map(({ metadata }) => metadata.name).sort()).toEqual(NODES)
    const pods = (await client.list({ apiVersion: 'v1', kind: 'Pod' })).filter((pod) => textAt(pod, 'status.podIP') !== undefined)
    expect(pods.map(({ metadata }) => metadata.name).sort()).toEqual(['db', 'web'])
    expect(pods.filter((pod) => !isReached(pod, networks))).toEqual([])
  })

  test('agents are in the same DaemonSet, of this version, with the requests that were edited', async () => {
    const daemonSet = await client.get(agents)
    expect(daemonSet.metadata.uid).toBe(uid)
    const [agent] = listAt(daemonSet, 'spec.template.spec.containers')
    expect(textAt(agent, 'image')).toBe(IMAGE)
    expect(textAt(agent, 'resources.requests.cpu')).toBe(EDITED_REQUESTS.cpu)
  })

  test('settings that were edited are in the configurations of this version', async () => {
    const kinds = ['FelixConfiguration', 'ControllersConfiguration']
    const [felix, controllers] = await Promise.all(kinds.map((kind) => client.get({ apiVersion: API_VERSION, kind, name: 'default' })))
    const levels = [felix, controllers].map((one) => textAt(one, 'spec.logSeverityScreen'))
    expect(levels).toEqual(isOperators(form) ? ['Info', 'Info'] : ['Debug', 'Debug'])
    expect(numberAt(felix, 'spec.prometheusMetricsPort')).toBe(isOperators(form) ? 9091 : undefined)
  })

  test('another run finds nothing to do', async () => {
    const { code, output } = await old.netplanectl('upgrade', 'run', '--json', '--timeout', '10')
    const { steps } = JSON.parse(output) as { steps: readonly { outcome: string }[] }
    expect(steps.length).toBeGreaterThan(0)
    expect(steps.filter(({ outcome }) => outcome !== 'before')).toEqual([])
    expect(code).toBe(0)
  })
})
