// SPDX-License-Identifier: Apache-2.0
/** From a real kube-proxy's rules to ours under traffic: what was open goes on, the rules are gone, new connections
 * are served. Layer: test. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { RequestAgent } from '../../lab/traffic/request-agent.ts'
import { Lab } from '../../lab/lab.ts'
import { startFlow, startRequests } from '../../lab/traffic/traffic.ts'
import { endpointText, type Endpoint } from '../../lab/tools/address.ts'
import type { Outcome } from '../../lab/tools/protocol.ts'
import { waitFor } from '../../lab/wait.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import { Manifests, node, pod } from './cluster.ts'

const agentCommand = [process.execPath, '--conditions=source', `${process.cwd()}/agent/main.ts`]
const fixture = (name: string): string => readFileSync(new URL(`../agent/dataplane/kube-proxy/${name}`, import.meta.url), 'utf8')

/** The cluster of the saved rules: two services, by cluster address and, the second, by the node port of its only
 * local endpoint. */
const PODS = [
  pod('default/shell-a', 'a', '10.245.1.20', 'fd00:245:1::20'),
  pod('default/shell-b', 'b', '10.245.2.20', 'fd00:245:2::20'),
  pod('default/plain-a', 'a', '10.245.1.11', 'fd00:245:1::11'),
  pod('default/plain-b', 'b', '10.245.2.11', 'fd00:245:2::11'),
  pod('default/balanced-a', 'a', '10.245.1.12', 'fd00:245:1::12'),
  pod('default/balanced-b', 'b', '10.245.2.12', 'fd00:245:2::12'),
]
const OBJECTS = [
  { ...node('a', '172.31.0.1', 'fd00:31::1'), spec: { podCIDRs: ['10.245.1.0/24', 'fd00:245:1::/64'] } },
  { ...node('b', '172.31.0.2', 'fd00:31::2'), spec: { podCIDRs: ['10.245.2.0/24', 'fd00:245:2::/64'] } },
  ...PODS,
  ...service('plain', 11, {}),
  ...service('balanced', 12, { type: 'NodePort', externalTrafficPolicy: 'Local', nodePort: 32462 }),
]

function service(
  name: string,
  last: number,
  more: { readonly nodePort?: number; readonly type?: string; readonly externalTrafficPolicy?: string },
): object[] {
  const { nodePort, ...spec } = more
  const clusterIPs = [`10.97.0.${last}`, `fd00:97::${last}`]
  const ports = [{ name: 'p', protocol: 'TCP', port: 80, targetPort: 8080, ...(nodePort === undefined ? {} : { nodePort }) }]
  const metadata = { name, namespace: 'default' }
  const slices = ['IPv4', 'IPv6'].map((addressType) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-${addressType.toLowerCase()}`, namespace: 'default', labels: { 'kubernetes.io/service-name': name } },
    addressType,
    ports: [{ name: 'p', protocol: 'TCP', port: 8080 }],
    endpoints: [1, 2].map((at) => ({
      addresses: [addressType === 'IPv4' ? `10.245.${at}.${last}` : `fd00:245:${at}::${last}`],
      nodeName: at === 1 ? 'a' : 'b',
      conditions: { ready: true },
    })),
  }))
  return [{ apiVersion: 'v1', kind: 'Service', metadata, spec: { clusterIP: clusterIPs[0], clusterIPs, ports, ...spec } }, ...slices]
}

const tcp = (address: string, port: number): Endpoint => ({ proto: 'tcp', address, port })
const CLUSTER = Array.from({ length: 6 }, () => [tcp('10.97.0.11', 80), tcp('fd00:97::11', 80)]).flat()

const FAMILIES = ['IPv4', 'IPv6'] as const

interface Saved {
  /** whose rules they are */
  readonly on: 'a' | 'b'
  readonly restore: string
  readonly input: string
  /** prints what is left of them */
  readonly list: string
}

/** To either backend from inside, to the local one from outside. */
function waysOf(on: 'a' | 'b') {
  const last = on === 'a' ? 1 : 2
  return [
    { from: `shell-${on}`, to: CLUSTER },
    { from: `node/${on}`, to: CLUSTER },
    { from: 'client', to: [tcp(`172.31.0.${last}`, 32462), tcp(`fd00:31::${last}`, 32462)] },
  ]
}

/** One connection by the first service that stays, and others from its port to all the backends that it can have. */
class Namesakes implements Disposable {
  readonly #from: string
  readonly #asker: RequestAgent
  readonly #at: { readonly localPort: number; readonly timeoutMs: number }
  readonly #to: Endpoint

  constructor(lab: Lab, from: string, family: (typeof FAMILIES)[number]) {
    this.#from = from
    this.#asker = new RequestAgent(lab, from)
    this.#at = { localPort: 20_000, timeoutMs: 5000 }
    this.#to = family === 'IPv4' ? tcp('10.97.0.11', 80) : tcp('fd00:97::11', 80)
  }

  async open(): Promise<void> {
    expect(await this.#order({ do: 'open', connection: 'first', to: endpointText(this.#to), ...this.#at })).toHaveProperty('pod')
  }

  async check(): Promise<void> {
    const backends = this.#to.address.includes(':') ? ['fd00:245:1::11', 'fd00:245:2::11'] : ['10.245.1.11', '10.245.2.11']
    const ask = { do: 'ask', count: 1, payload: 64, reply: 0, ...this.#at } as const
    const say = { do: 'say', connection: 'first', timeoutMs: 5000 } as const
    expect(await this.#order(say)).toHaveProperty('pod')
    for (const backend of backends)
      expect(await this.#order({ ...ask, to: endpointText(tcp(backend, 8080)) }), `${this.#from} to ${backend}`).toHaveProperty('pod')
    expect(await this.#order(say), `${this.#from} to ${this.#to.address}, then`).toHaveProperty('pod')
  }

  [Symbol.dispose](): void {
    this.#asker.close()
  }

  async #order(order: Parameters<RequestAgent['order']>[0]): Promise<Outcome | undefined> {
    return (await this.#asker.order(order))[0]
  }
}

/** What another kernel than that of the saved rules may lack: counters of accounting. */
const RULES: Readonly<Record<string, Saved>> = {
  nft: iptables('nft'),
  legacy: iptables('legacy'),
  nftables: {
    on: 'b',
    restore: 'nft -f -',
    input: fixture('nftables.txt'),
    list: 'nft list tables | grep "kube-proxy$"',
  },
}

function iptables(kind: string): Saved {
  const part = (tool: string, name: string): string => {
    const text = fixture(name).replaceAll(/ -m nfacct --nfacct-name +\S+/g, '')
    return `${tool}-${kind}-restore --noflush <<'RULES'\n${text}\nRULES\n`
  }
  const list = `{ iptables-${kind}-save; ip6tables-${kind}-save; } | grep KUBE- | grep -v KUBE-FIREWALL`
  return { on: 'a', restore: 'sh -e', input: part('iptables', 'iptables.txt') + part('ip6tables', 'ip6tables.txt'), list }
}

test.each(Object.entries(RULES))('%s', async (kind, { on, restore, input, list }) => {
  using manifests = new Manifests(OBJECTS)
  // until the agents come the kernel routes, as it does where kube-proxy is at work
  await using lab = await Lab.up({ name: `thand${kind}`, resources: manifests.dir, agentCommand, plain: true })
  const ways = waysOf(on)
  await lab.mustRun(`node/${on}`, restore.split(' '), { input })
  const rules = async (): Promise<string> => (await lab.run(`node/${on}`, ['sh', '-c', list])).stdout
  expect(await rules()).not.toBe('')

  using stack = new DisposableStack()
  const namesakes = [`shell-${on}`, `node/${on}`].flatMap((from) => FAMILIES.map((family) => stack.use(new Namesakes(lab, from, family))))
  for (const one of namesakes) await one.open()
  const flows = await Promise.all(ways.map((way) => startFlow(lab, { ...way, rate: 50 })))
  await lab.startAgents(true)
  const removed = (): true | undefined => (lab.log(on).includes('"kube-proxy.removed"') ? true : undefined)
  expect(await waitFor(removed, { timeoutMs: HANG_MS }), lab.log(on)).toBe(true)
  expect(lab.log(on)).toMatch(/"takeover.begun".*"dataplane.ready".*"kube-proxy.removed"/s)
  expect(await rules()).toBe('')

  const fresh = ways.flatMap(({ from, to }) => to.slice(0, 2).map((one) => startRequests(lab, { from, to: one, count: 20 })))
  for (const requests of fresh) {
    const result = await requests.result
    expect(result, JSON.stringify(result)).toMatchObject({ ok: 20, refused: 0, reset: 0, timeouts: 0 })
  }
  for (const one of namesakes) await one.check()
  const streams = (await Promise.all(flows.map((flow) => flow.stop()))).flatMap((flow) => flow.streams)
  expect(streams).toHaveLength(26)
  for (const stream of streams) expect(stream, JSON.stringify(stream)).toMatchObject({ lost: 0, reconnects: 0, errors: {} })
  expect(new Set(streams.flatMap((stream) => Object.keys(stream.pods)))).toEqual(new Set(['plain-a', 'plain-b', `balanced-${on}`]))
})
