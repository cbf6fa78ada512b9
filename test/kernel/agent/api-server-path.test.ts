// SPDX-License-Identifier: Apache-2.0
/** Services where the agent asks the API server: an agent, a process of the node and a pod still reach the server.
 * Layer: test. */
import type { ChildProcess } from 'node:child_process'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BpfMap } from '#native'
import { ADDR_SERVICE, FRONTEND_EXTERNAL, FRONTEND_NODE_PORT } from '#lib/base/bpf-constants.ts'
import { ANY_V4, ANY_V6, isV4, parseAddr, parsePort, type Addr } from '#lib/base/ip.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import { typesOf } from '#agent/dataplane/programs/migrate-map.ts'
import { NO_RULES } from '#agent/dataplane/maps/encode-rows.ts'
import { bindMap, catalogue, type MapCodecs, type MapDefinition } from '#agent/maps/catalogue.ts'
import { decodeBytes, encodeBytes } from '#agent/maps/byte-rows.ts'
import { AgentProcess, ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { felix, node } from './manifests.ts'
import { PINS } from './node.ts'
import { programCommand } from '../../../testkit/base/program.ts'

const ROOT = new URL('../../../', import.meta.url).pathname
const PORT = 6443
const NODE = { v4: '192.0.2.1', v6: 'fd00::1' }
const OUTSIDE = { v4: '192.0.2.9', v6: 'fd00::9' }
const THIEF = { v4: '10.1.1.6', v6: 'fd01::6' }
const SERVICE = { v4: '10.96.0.10', v6: 'fd96::10' }
const SOON = { interval: 100 }

type KubeObject = { readonly metadata: { readonly name: string; readonly namespace?: string } } & Readonly<Record<string, unknown>>

let machine: ScratchNode
let children: ChildProcess[]
let objects: [string, KubeObject][]

beforeEach(async () => {
  machine = await ScratchNode.make()
  children = []
  machine.sh(`
    mkdir -p /run/netns
    mount -t tmpfs tmpfs /run/netns
    sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
    ip netns add outside
    ip link add eth0 type veth peer name eth0 netns outside
    ip -n outside link set lo up
    for end in "eth0 ${NODE.v4} ${NODE.v6}" "eth0 ${OUTSIDE.v4} ${OUTSIDE.v6} outside"; do
      set -- $end
      in=\${4:+-n $4}
      ip $in addr add $2/24 dev $1
      ip $in addr add $3/64 dev $1 nodad
      ip $in link set $1 up
    done
    ip -n outside route add 10.1.1.0/24 via ${NODE.v4}
    ip -n outside route add fd01::/64 via ${NODE.v6}`)
  plug('a', '10.1.1.5', 'fd01::5')
  plug('t', THIEF.v4, THIEF.v6)
  const answer = 'require("http").createServer((ask, answer) => answer.end("thief\\n")).listen(8080, "::", () => console.log("ready"))'
  await started(['ip', 'netns', 'exec', 't', process.execPath, '-e', answer])
  objects = [
    ['/api/v1/nodes', Object.assign({}, node('n1', NODE.v4, '10.1.1.0/24') as KubeObject, { status: { addresses: addressesOf(NODE) } })],
    ['/api/v1/pods', podAt('a', '10.1.1.5', 'fd01::5')],
    ['/api/v1/pods', podAt('t', THIEF.v4, THIEF.v6)],
    ['/api/v1/services', thief({})],
    ['/apis/discovery.k8s.io/v1/endpointslices', slice('thief-4', 'IPv4', THIEF.v4)],
    ['/apis/discovery.k8s.io/v1/endpointslices', slice('thief-6', 'IPv6', THIEF.v6)],
    ['/apis/netplane.io/v3/felixconfigurations', felix(machine.cgroup) as KubeObject],
  ]
  serve()
})

afterEach(async () => {
  for (const child of children) child.kill('SIGKILL')
  await expect.poll(() => readFileSync(join(machine.cgroup, 'cgroup.events'), 'utf8'), SOON).toContain('populated 0')
  await machine[Symbol.asyncDispose]()
})

function plug(name: string, v4: string, v6: string): void {
  const veth = workloadInterface({ namespace: 'default', name })
  machine.sh(`
    ip netns add ${name}
    ip link add ${veth} type veth peer name eth0 netns ${name}
    ip link set ${veth} up
    ip -n ${name} link set lo up
    ip -n ${name} link set eth0 up
    ip -n ${name} addr add ${v4}/32 dev eth0
    ip -n ${name} addr add ${v6}/128 dev eth0 nodad
    ip -n ${name} route add default via 169.254.1.1 dev eth0 onlink
    ip -n ${name} -6 route add default via fe80::1 dev eth0 onlink
    ip route add ${v4}/32 dev ${veth}
    ip route add ${v6}/128 dev ${veth}`)
}

function addressesOf({ v4, v6 }: { readonly v4: string; readonly v6: string }): readonly object[] {
  return [v4, v6].map((address) => ({ type: 'InternalIP', address }))
}

function podAt(name: string, ...ips: readonly string[]): KubeObject {
  return {
    metadata: { namespace: 'default', name },
    spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
    status: { phase: 'Running', podIP: ips[0], podIPs: ips.map((ip) => ({ ip })) },
  }
}

function slice(name: string, addressType: string, address: string): KubeObject {
  return {
    metadata: { namespace: 'default', name, labels: { 'kubernetes.io/service-name': 'thief' } },
    addressType,
    ports: [{ port: 8080, protocol: 'TCP' }],
    endpoints: [{ addresses: [address], nodeName: 'n1', conditions: { ready: true } }],
  } as KubeObject
}

function thief(spec: Readonly<Record<string, unknown>>, nodePort?: number): KubeObject {
  const ports = [{ port: PORT, targetPort: 8080, protocol: 'TCP', ...(nodePort === undefined ? {} : { nodePort }) }]
  const clusterIPs = [SERVICE.v4, SERVICE.v6]
  return {
    metadata: { namespace: 'default', name: 'thief' },
    spec: { type: 'NodePort', clusterIP: clusterIPs[0], clusterIPs, ports, ...spec },
  }
}

function serve(): void {
  const file = join(machine.folder, 'objects.json')
  writeFileSync(`${file}.part`, JSON.stringify(objects))
  renameSync(`${file}.part`, file)
}

function put(object: KubeObject): void {
  objects = [...objects.filter(([, { metadata }]) => metadata.name !== object.metadata.name), ['/api/v1/services', object]]
  serve()
}

async function started(command: readonly string[]): Promise<void> {
  const child = machine.spawn(command)
  children.push(child)
  let said = ''
  child.stdout?.on('data', (text: Buffer) => (said += text.toString()))
  child.stderr?.on('data', (text: Buffer) => (said += text.toString()))
  await expect.poll(() => said, SOON).toContain('ready')
}

/** `prefix`: where it runs, unless it is the node itself. */
async function server(...prefix: readonly string[]): Promise<void> {
  const script = join(ROOT, 'test/kernel/agent/serve-objects.ts')
  await started([...prefix, process.execPath, '--conditions=source', script, String(PORT), join(machine.folder, 'objects.json')])
}

/** Its connections are translated as those of any process of the node. */
function agentOf(host: string): AgentProcess {
  const config = {
    clusters: [{ name: 'c', cluster: { server: `http://${host}:${PORT}` } }],
    users: [{ name: 'u', user: { token: 'secret' } }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  }
  const file = join(machine.folder, 'kubeconfig')
  writeFileSync(file, JSON.stringify(config))
  const program = programCommand('agent')
  const flags = ['--node', 'n1', '--kubeconfig', file, '--state-dir', machine.state, '--health-port', '9099']
  const child = machine.spawn(['sh', '-c', `echo $$ > ${machine.cgroup}/cgroup.procs; exec "$@"`, 'sh', ...program, ...flags])
  children.push(child)
  return new AgentProcess(child)
}

/** Which server answers there: the API server, or that of the thief's Service. */
function answers(host: string): Readonly<Record<'process' | 'pod' | 'outside', string>> {
  const ask = `curl -s -m 3 'http://${host}:${PORT}/api/v1/pods' | grep -o -m 1 'thief\\|"List"' || echo none`
  const asked = (script: string): string => machine.sh(script).trim()
  return {
    process: asked(`sh -c 'echo $$ > ${machine.cgroup}/cgroup.procs; ${ask.replaceAll("'", `'"'"'`)}'`),
    pod: asked(`ip netns exec a sh -c "${ask.replaceAll('"', '\\"')}"`),
    outside: asked(`ip netns exec outside sh -c "${ask.replaceAll('"', '\\"')}"`),
  }
}

const EVERYBODY = { process: '"List"', pod: '"List"', outside: '"List"' }

function rowsOf<K, V>(definition: MapDefinition<K, V>): { readonly map: BpfMap; readonly codecs: MapCodecs<K, V> } {
  const map = BpfMap.openPin(machine.path(`${PINS}/maps/${definition.name}`))
  const types = typesOf(map)
  return { map, codecs: bindMap(definition, types.btf, types) }
}

/** As an agent left it that did not know better. */
function leave(addr: Addr, flags: number): void {
  const { map, codecs } = rowsOf(catalogue.np_frontends)
  const key = (at: Addr): Buffer => encodeBytes(codecs.key, { addr: at, port: parsePort(PORT), proto: 6 })
  const row = map.lookup(key(parseAddr(isV4(addr) ? SERVICE.v4 : SERVICE.v6)))
  if (row === undefined) throw new Error('the service has no frontend')
  map.update(key(addr), encodeBytes(codecs.value, { ...decodeBytes(codecs.value, row), flags }))
  map.close()
}

function leaveAddress(addr: Addr): void {
  const { map, codecs } = rowsOf(catalogue.np_addrs)
  map.update(encodeBytes(codecs.key, addr), encodeBytes(codecs.value, { kind: ADDR_SERVICE, flags: 0, ifindex: 0, ...NO_RULES }))
  map.close()
}

function condition(): string {
  return machine.sh('curl -s http://127.0.0.1:9099/readiness | grep -o \'{"name":"api.way"[^}]*}\' || echo none').trim()
}

describe.each([
  ['IPv4', 'v4', OUTSIDE.v4],
  ['IPv6', 'v6', `[${OUTSIDE.v6}]`],
] as const)('%s, the API server on another machine:', (_, family, host) => {
  const addr = parseAddr(OUTSIDE[family])
  const frontend = `${host}:${PORT}/TCP`

  test('a Service with its address and port comes while the agent runs, and the agent goes on', async () => {
    await server('ip', 'netns', 'exec', 'outside')
    const agent = agentOf(host)
    await agent.event('dataplane.ready')
    put(thief({ externalIPs: [OUTSIDE[family]] }))
    const refused = await agent.event('object.rejected')
    expect(refused).toMatchObject({
      ref: 'Service/default/thief',
      reason: `${frontend} is where an API server is asked: no Service may have it`,
    })
    expect(answers(host)).toEqual(EVERYBODY)
    expect(condition()).toContain('"ok":false')
    expect(condition()).toContain(frontend)
    await agent.stop()
    const next = agentOf(host)
    await next.event('dataplane.ready')
    expect(answers(host)).toEqual(EVERYBODY)
  })

  test('what an agent before left in the way is gone before the next one asks', async () => {
    await server('ip', 'netns', 'exec', 'outside')
    const first = agentOf(host)
    await first.event('dataplane.ready')
    await first.stop()
    leave(addr, FRONTEND_EXTERNAL)
    leaveAddress(addr)
    expect(answers(host)).toMatchObject({ process: 'thief', pod: 'thief' })
    const next = agentOf(host)
    const cleared = await next.event('api-server-path.cleared')
    expect(cleared).toMatchObject({ server: `${host}:${PORT}`, cleared: ['frontend', 'address'] })
    await next.event('dataplane.ready')
    expect(next.events('source.disconnected')).toEqual([])
    expect(answers(host)).toEqual(EVERYBODY)
  })

  test('a Service with another port of its address does not make the node drop what goes to the server', async () => {
    await server('ip', 'netns', 'exec', 'outside')
    const agent = agentOf(host)
    await agent.event('dataplane.ready')
    put(thief({ externalIPs: [OUTSIDE[family]], ports: [{ port: 8080, targetPort: 8080, protocol: 'TCP' }] }))
    const other = `curl -s -m 1 'http://${host}:8080/'`
    await expect.poll(() => machine.sh(`ip netns exec a ${other} || echo none`).trim(), SOON).toBe('thief')
    expect(answers(host)).toEqual(EVERYBODY)
  })
})

describe.each([
  ['IPv4', 'v4', NODE.v4],
  ['IPv6', 'v6', `[${NODE.v6}]`],
] as const)('%s, the API server on the node itself:', (_, family, host) => {
  const any = family === 'v4' ? ANY_V4 : ANY_V6

  test('a node port with the number of its port comes while the agent runs, and the agent goes on', async () => {
    await server()
    const agent = agentOf(host)
    await agent.event('dataplane.ready')
    put(thief({ externalIPs: [NODE[family]] }, PORT))
    await agent.event('object.rejected', 2)
    expect(answers(host)).toEqual(EVERYBODY)
    await agent.stop()
    const next = agentOf(host)
    await next.event('dataplane.ready')
    expect(answers(host)).toEqual(EVERYBODY)
  })

  test('the node port that an agent before left there is gone before the next one asks', async () => {
    await server()
    const first = agentOf(host)
    await first.event('dataplane.ready')
    await first.stop()
    leave(any, FRONTEND_EXTERNAL | FRONTEND_NODE_PORT)
    expect(answers(host)).toEqual({ process: 'thief', pod: 'thief', outside: 'thief' })
    const next = agentOf(host)
    expect(await next.event('api-server-path.cleared')).toMatchObject({ cleared: ['node port'] })
    await next.event('dataplane.ready')
    expect(answers(host)).toEqual(EVERYBODY)
  })
})

test.each([
  ['IPv4', '198.51.100.7', NODE.v4],
  ['IPv6', 'fd07::7', NODE.v6],
])('%s: a node port has not the port of a server at an address that no Node names, of another device', async (_, address, via) => {
  const [host, bits] = address.includes(':') ? [`[${address}]`, '128 nodad'] : [address, '32']
  machine.sh(`
    ip link add vip0 type veth peer name vip1
    ip link set vip1 up
    ip link set vip0 up
    ip addr add ${address}/${bits} dev vip0
    ip -n outside route add ${address} via ${via}`)
  await server()
  const agent = agentOf(host)
  await agent.event('dataplane.ready')
  put(thief({}, PORT))
  await agent.event('object.rejected', 1)
  expect(answers(host)).toEqual(EVERYBODY)
  await agent.stop()
  const next = agentOf(host)
  await next.event('dataplane.ready')
  expect(answers(host)).toEqual(EVERYBODY)
})

test('a server that is asked at loopback, by a name of both families, keeps its port from node ports', async () => {
  await server()
  const agent = agentOf('localhost')
  await agent.event('dataplane.ready')
  put(thief({}, PORT))
  await agent.event('object.rejected')
  const { process: own } = answers('localhost')
  expect(own).toBe('"List"')
  await agent.stop()
  await agentOf('localhost').event('dataplane.ready')
  expect(answers('localhost').process).toBe('"List"')
})
