// SPDX-License-Identifier: Apache-2.0
/** explain on a node: the loaded programs run with a packet, on maps that the compiler has filled. Layer: test. */
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BpfLink, ifindexOf } from '#native'
import type { BpfMap } from '#native'
import { ADDR_LOCAL_POD, ADDR_NODE_PORTS, ADDR_SELF, IFACE_HOST, IFACE_WORKLOAD } from '#lib/base/bpf-constants.ts'
import { isObject } from '#lib/base/object.ts'
import { ANY_V4, parseAddr, type Addr } from '#lib/base/ip.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { openObject } from '#agent/dataplane/programs/objects.ts'
import { ensureMaps, type SharedMaps } from '#agent/dataplane/programs/shared-maps.ts'
import { Pins } from '#agent/dataplane/pins.ts'
import { readArgs } from '../../cli/args.ts'
import { readCandidates } from '../../cli/candidates.ts'
import { explainCommand } from '../../cli/explain/command.ts'
import { loadClusters } from '../../cli/explain/manifests/load-cluster.ts'
import type { NodeView } from '../../cli/explain/manifests/node-view.ts'
import type { CommandResult } from '../../cli/command-result.ts'
import { addrInfo } from '../../testkit/packets/addr-info.ts'
import { PolicyMaps } from '../../testkit/packets/policy-maps.ts'
import { loadObject, objectPath, program, TestMap, type Loaded } from '../../testkit/packets/objects.ts'
import { kernelFacts } from './kernel-facts.ts'
import { testCfg } from '../../testkit/packets/runner.ts'
import { namespaceSysctls } from '../../testkit/packets/cluster.ts'
import { TIMEOUTS } from '../support/flow-entries.ts'

const SIZES = { conntrack: 1000, frontends: 100, backends: 100, affinity: 100, addrs: 300, live: 100 }
const MAC = '02:00:00:00:99:99'
const [web, db] = ['web', 'db-0'].map((name) => workloadInterface({ namespace: 'shop', name }))
const DEVICES = [web ?? '', db ?? '', 'np-explain']
const facts = kernelFacts()

let pins: Pins
let shared: SharedMaps
let loaded: Loaded
let view: NodeView
let server: Server
let agent: string
const links: BpfLink[] = []

beforeAll(async () => {
  pins = new Pins(join(mkdtempSync('/sys/fs/bpf/np-explain-'), 'netplane'))
  makeDevices()
  forward()
  const opened = openObject({ name: 'tc', path: objectPath('tc') })
  shared = await ensureMaps({ pins, objects: [opened], sizes: SIZES, timeouts: TIMEOUTS })
  opened.object.close()
  const share = new Map<string, BpfMap>(shared.maps)
  const cfg = { ...testCfg(facts.features), node_v4: parseAddr('192.0.2.1') }
  const stubHelpers = facts.missingHelpers
  loaded = await loadObject('tc', { cfg, share, stubHelpers })
  const worlds = await loadClusters(fileURLToPath(new URL('../cli/cluster', import.meta.url)), undefined)
  view = worlds.now.view('n1')
  fill()
  links.push(BpfLink.attachTcx(program(loaded, 'from_workload'), ifindexOf(DEVICES[0] ?? ''), 'ingress'))
  server = createServer((request, response) => {
    response.writeHead(request.url === '/policy/rules' ? 200 : 404)
    response.end(JSON.stringify(Object.fromEntries(ruleNumbers().map((number) => [number, view.policy.ruleName(number)]))))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  agent = isObject(address) ? `127.0.0.1:${String(address['port'])}` : ''
})

afterAll(() => {
  for (const link of links) link.close()
  server.close()
  loaded.object.close()
  shared[Symbol.dispose]()
  rmSync(dirname(pins.dir), { recursive: true })
  removeDevices()
})

function removeDevices(): void {
  spawnSync('ip', ['-force', '-batch', '-'], {
    input: DEVICES.map((name) => `link del ${name}\n`).join(''),
    stdio: ['pipe', 'ignore', 'ignore'],
  })
}

function makeDevices(): void {
  removeDevices()
  const lines = DEVICES.flatMap((name, at) => [
    `link add ${name} type veth peer name np-peer${at}`,
    `link set np-peer${at} up`,
    `link set ${name} up`,
  ])
  const routes = [
    ['10.1.0.2', DEVICES[0]],
    ['10.1.0.3', DEVICES[1]],
  ].flatMap(([addr = '', name = '']) => [`route add ${addr} dev ${name}`, `neigh replace ${addr} lladdr ${MAC} dev ${name} nud permanent`])
  const underlay = ['addr add 192.0.2.1/24 dev np-explain', `neigh replace 192.0.2.2 lladdr ${MAC} dev np-explain nud permanent`]
  const remote = ['route add 10.1.1.0/24 via 192.0.2.2 dev np-explain']
  execFileSync('ip', ['-batch', '-'], { input: `${['link set lo up', ...lines, ...underlay, ...routes, ...remote].join('\n')}\n` })
}

/** Packets between pods and the world pass through this node. */
function forward(): void {
  for (const [path, value] of Object.entries(namespaceSysctls)) writeFileSync(`/proc/sys/${path}`, value)
}

function ruleNumbers(): readonly number[] {
  return [...view.policy.tables.rows.values()].flatMap((row) => (row.table === 'rules' ? [row.value.number] : []))
}

/** What the agent would write of the cluster. */
function fill(): void {
  const policy = new PolicyMaps(loaded)
  const addrs = new TestMap(loaded, catalogue.np_addrs)
  const ifaces = new TestMap(loaded, catalogue.np_ifaces)
  for (const row of view.policy.tables.rows.values()) {
    if (row.table === 'hosts') continue
    if (row.table !== 'ends') {
      policy.write(row, false)
      continue
    }
    const { identity, ingress, egress, stagedIngress, stagedEgress } = row.value
    const { kind = 0, flags = 0, iface } = view.addr(row.key.addr) ?? {}
    const ifindex = kind === ADDR_LOCAL_POD && iface !== undefined ? ifindexOf(iface) : 0
    const sets = { ingress, egress, staged_ingress: stagedIngress, staged_egress: stagedEgress }
    addrs.set(row.key.addr, addrInfo(kind, { flags, ifindex, identity, ...sets }))
  }
  for (const [at, name] of DEVICES.entries())
    ifaces.set(ifindexOf(name), { mtu: 1500, kind: at === 2 ? IFACE_HOST : IFACE_WORKLOAD, mac: '02:00:00:00:00:07' })
  const frontend = view.frontend(parseAddr('10.96.0.10'), 5432, 6)
  if (frontend === undefined) throw new Error('no service')
  new TestMap(loaded, catalogue.np_frontends).set({ ...frontend.key, proto: 6 }, { ...frontend.value, affinity: 100 })
  const backends = new TestMap(loaded, catalogue.np_backends)
  const { list } = frontend.value.inside
  for (const [slot, value] of view.backends(list).entries()) backends.set({ list, slot }, value)
}

/** While a test runs the node has these policies as well, 192.0.2.1 is its own, 10.96.0.77:80 leads to "web" and
 * node port 30077 to "db-0". */
async function withPolicies(policies: readonly object[], work: () => Promise<void>): Promise<void> {
  const before = view
  const folder = mkdtempSync(join(tmpdir(), 'np-explain-'))
  const [addrs, frontends] = [new TestMap(loaded, catalogue.np_addrs), new TestMap(loaded, catalogue.np_frontends)]
  const own = parseAddr('192.0.2.1')
  try {
    const candidate = join(folder, 'policies.json')
    writeFileSync(candidate, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: policies }))
    const worlds = await loadClusters(fileURLToPath(new URL('../cli/cluster', import.meta.url)), readCandidates(candidate))
    view = worlds.candidate?.view('n1') ?? before
    fill()
    addrs.set(own, addrInfo(ADDR_SELF, { flags: ADDR_NODE_PORTS }))
    const serve = (
      frontend: { readonly addr: Addr; readonly port: number },
      backend: { readonly addr: string; readonly port: number },
    ): void => {
      const choice = { count: 1, list: frontend.port.toString(16).padStart(16, '0') }
      const value = { ...backend, addr: parseAddr(backend.addr), node: ANY_V4, flags: 0 }
      new TestMap(loaded, catalogue.np_backends).set({ list: choice.list, slot: 0 }, value)
      frontends.set({ ...frontend, proto: 6 }, { inside: choice, outside: choice, flags: 0, affinity: 0 })
    }
    serve({ addr: parseAddr('10.96.0.77'), port: 80 }, { addr: '10.1.0.2', port: 80 })
    serve({ addr: ANY_V4, port: 30077 }, { addr: '10.1.0.3', port: 5432 })
    await work()
  } finally {
    addrs.delete(own)
    rmSync(folder, { recursive: true })
    view = before
    fill()
  }
}

async function run(line: string, of = agent): Promise<CommandResult> {
  const order = readArgs(['explain', '--pins', pins.dir, '--agent', of, ...line.split(' ')])
  if (order.kind !== 'explain') throw new Error('another command')
  return await explainCommand(order)
}

/** What the command answers, without what differs from run to run. */
async function text(line: string): Promise<string> {
  const { text: answer, exitCode, warnings } = await run(line)
  expect([exitCode, warnings]).toEqual([0, ''])
  return answer
    .replaceAll(/:(49|5\d|6\d)\d{3}\b/g, ':PORT')
    .replaceAll(web ?? '', 'WEB')
    .replaceAll(db ?? '', 'DB')
}

async function flows(): Promise<number> {
  return (await new TestMap(loaded, catalogue.np_ct).entries()).length
}

describe('explain on a node', () => {
  test('an allowed flow: by which rules, and where to; nothing of it stays', async () => {
    expect(await text('shop/web 10.1.0.3:5432')).toMatchInlineSnapshot(`
      "TCP 10.1.0.2:PORT > 10.1.0.3:5432
        verdict: allow, by from_workload on WEB
        leaves as 10.1.0.2:PORT > 10.1.0.3:5432, next pod DB; egress by -, ingress by KubernetesNetworkPolicy/shop/db ingress 0
        CHECK                    OUTCOME  ID          RULE
        egress 10.1.0.2          allow    -           no rules are asked
        egress 10.1.0.2, staged  deny     2773330387  Tier/default egress end
        ingress 10.1.0.3         pass     2018846189  GlobalNetworkPolicy/security.no-old ingress 1
                                 allow    3919635314  KubernetesNetworkPolicy/shop/db ingress 0
      "
    `)
    expect(await flows()).toBe(0)
  })

  test('a denied one', async () => {
    expect(await text('--protocol udp shop/web shop/db-0:53')).toMatchInlineSnapshot(`
      "UDP 10.1.0.2:PORT > 10.1.0.3:53
        verdict: deny (counted: policy), by from_workload on WEB
        CHECK                    OUTCOME  ID          RULE
        egress 10.1.0.2          allow    -           no rules are asked
        egress 10.1.0.2, staged  allow    1679952550  StagedNetworkPolicy/shop/default.later egress 0
        ingress 10.1.0.3         pass     2018846189  GlobalNetworkPolicy/security.no-old ingress 1
                                 deny     881118879   Tier/default ingress end

      UDP [fd00:1::2]:PORT > [fd00:1::3]:53
        verdict: deny (counted: policy), by from_workload on WEB
        CHECK                     OUTCOME  ID          RULE
        egress fd00:1::2          allow    -           no rules are asked
        egress fd00:1::2, staged  allow    1679952550  StagedNetworkPolicy/shop/default.later egress 0
        ingress fd00:1::3         pass     2018846189  GlobalNetworkPolicy/security.no-old ingress 1
                                  deny     881118879   Tier/default ingress end
      "
    `)
  })

  test('an echo', async () => {
    expect(await text('--protocol icmp 10.1.0.2 10.1.1.3')).toMatchInlineSnapshot(`
      "ICMP 8/0 10.1.0.2 > 10.1.1.3
        verdict: allow, by from_workload on WEB
        leaves as 10.1.0.2 > 10.1.1.3, next device np-explain; egress by -, ingress by -
        CHECK                    OUTCOME  ID          RULE
        egress 10.1.0.2          allow    -           no rules are asked
        egress 10.1.0.2, staged  deny     2773330387  Tier/default egress end
      "
    `)
    expect(await flows()).toBe(0)
  })

  test('a service: the backend that was chosen, and its affinity as before', async () => {
    const answer = await text('shop/web 10.96.0.10:5432')
    expect(answer).toContain('service: 10.96.0.10:5432/TCP, for inside: 10.1.0.3:5432, 10.1.1.3:5432')
    expect(answer).toMatch(/leaves as 10\.1\.0\.2:PORT > 10\.1\.[01]\.3:5432, next (pod DB|device np-explain); egress by -/)
    expect([await flows(), (await new TestMap(loaded, catalogue.np_affinity).entries()).length]).toEqual([0, 0])
  })

  test("a pod's rules see its own node's port as it was asked for, and of itself only ClusterNetworkPolicies count", async () => {
    const metadata = { name: 'ports', namespace: 'shop' }
    const to = [{ ipBlock: { cidr: '192.0.2.1/32' } }]
    const podSelector = { matchLabels: { app: 'web' } }
    const spec = { podSelector, policyTypes: ['Ingress', 'Egress'], ingress: [], egress: [{ to, ports: [{ port: 30077 }] }] }
    const ports = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec }
    await withPolicies([ports], async () => {
      expect(await text('shop/web 10.96.0.77:80')).toMatch(/verdict: allow(?![^]*deny)/)
      expect(await text('shop/web 192.0.2.1:30077')).toMatch(/verdict: allow(?![^]*deny)/)
      expect(await text('shop/web 10.1.0.3:5432')).toMatch(/verdict: deny/)
    })
    const ingress = [{ action: 'Deny', from: [{ namespaces: {} }] }]
    const admin = { tier: 'Admin', priority: 1, subject: { namespaces: {} }, ingress }
    const cluster = {
      apiVersion: 'policy.networking.k8s.io/v1alpha2',
      kind: 'ClusterNetworkPolicy',
      metadata: { name: 'admin' },
      spec: admin,
    }
    await withPolicies([cluster], async () => {
      expect(await text('shop/web 10.96.0.77:80')).toMatch(
        /verdict: deny[^]*ingress 10\.1\.0\.2 +deny +\d+ +ClusterNetworkPolicy\/admin ingress 0/,
      )
    })
  })

  test('without an agent there are numbers; as JSON', async () => {
    const { text: answer, exitCode } = await run('--json --source-port 49200 shop/web 10.1.0.3:5432', '127.0.0.1:1')
    expect(exitCode).toBe(0)
    const record: unknown = JSON.parse(
      answer
        .replace(/"id": \d+/, '"id": 0')
        .replaceAll(web ?? '', 'WEB')
        .replaceAll(db ?? '', 'DB'),
    )
    expect(record).toMatchObject({ warnings: [expect.stringContaining('no agent tells names of rules at 127.0.0.1:1')] })
    expect(isObject(record) && Array.isArray(record['flows']) ? record['flows'][0] : record).toMatchInlineSnapshot(`
      {
        "at": {
          "id": 0,
          "interface": "WEB",
          "program": "from_workload",
        },
        "disagreement": null,
        "from": {
          "address": "10.1.0.2",
          "port": 49200,
        },
        "icmp": null,
        "outcomes": [
          {
            "checks": [
              {
                "direction": "egress",
                "of": "10.1.0.2",
                "passed": [],
                "rule": null,
                "stage": "pod",
                "staged": {
                  "passed": [],
                  "rule": {
                    "name": null,
                    "number": 2773330387,
                  },
                  "verdict": "deny",
                },
                "verdict": "allow",
              },
              {
                "direction": "ingress",
                "of": "10.1.0.3",
                "passed": [
                  {
                    "name": null,
                    "number": 2018846189,
                  },
                ],
                "rule": {
                  "name": null,
                  "number": 3919635314,
                },
                "stage": "pod",
                "staged": null,
                "verdict": "allow",
              },
            ],
            "to": {
              "address": "10.1.0.3",
              "port": 5432,
            },
            "verdict": "allow",
          },
        ],
        "proto": "TCP",
        "run": {
          "action": "redirect",
          "drops": [],
          "flow": {
            "from": {
              "address": "10.1.0.2",
              "port": 49200,
            },
            "rules": {
              "egress": null,
              "ingress": {
                "name": null,
                "number": 3919635314,
              },
              "stagedEgress": {
                "name": null,
                "number": 2773330387,
              },
              "stagedIngress": {
                "name": null,
                "number": 3919635314,
              },
            },
            "to": {
              "address": "10.1.0.3",
              "port": 5432,
            },
            "way": {
              "by": "pod",
              "flags": [
                "ready",
                "pod",
                "opening",
                "by-node",
              ],
              "interface": "DB",
              "node": null,
            },
          },
          "verdict": "allow",
        },
        "service": null,
        "to": {
          "address": "10.1.0.3",
          "port": 5432,
        },
      }
    `)
  })

  test.each([
    ['shop/nobody 10.1.0.3:80', 'is no pod of this node'],
    ['shop/web svc/shop/db:sql', 'maps do not have names of services and nodes'],
    ['shop/db-0 10.1.0.2:80', `from_workload is not attached to ${db ?? ''}`],
    ['192.0.2.1 10.1.0.2:80', 'what the node itself sends'],
    ['198.51.100.1 10.1.0.2:80', 'from_host is not attached to np-explain'],
  ])('%s is refused', async (line, reason) => {
    await expect(run(line)).rejects.toThrow(reason)
  })
})
