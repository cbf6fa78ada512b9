// SPDX-License-Identifier: Apache-2.0
/** What may go wrong beside another CNI plugin: pods that are forgotten, ways and errors that are the kernel's,
 * rules of devices. One node for all. Layer: test. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { AgentProcess } from '../../../testkit/base/scratch-node.ts'
import { felix, globalPolicy, hostEndpoint, node } from '../agent/manifests.ts'
import { ChainedNode, NODE, OUTSIDE, type Fields } from './chained-node.ts'

let of: ChainedNode
let agent: AgentProcess

const FAMILIES = ['v4', 'v6'] as const
const RANGE = '10.3.0.0/24'
/** Of the other node, whose pods are behind the tunnel that the other plugin has made. */
const FAR = { range: '10.3.1.0/24', device: '10.3.1.0', pod: '10.3.1.5', mac: '02:00:00:00:01:02' }
const SERVICES = { far: '10.96.0.11', shut: '10.96.0.12', near: '10.96.0.13' }
const ECHO = 5353

/** Two pods that the agent got an ADD of, on a veth alone and on a bridge, and one that was there before it. */
const PODS = ['told', 'bridged', 'found']

function theirs(kind: 'ptp' | 'bridge'): Fields {
  const [first, bridge] = kind === 'ptp' ? [{ type: 'ptp' }, []] : [{ type: 'bridge', bridge: 'cni0', isGateway: true }, [1]]
  const ranges =
    bridge.length === 0
      ? [[{ subnet: RANGE }], [{ subnet: 'fd00:3::/80' }]]
      : [[{ subnet: '10.4.0.0/24' }], [{ subnet: 'fd00:3:0:0:1::/80' }]]
  const routes = [{ dst: '0.0.0.0/0' }, { dst: '::/0' }]
  const ipam = { type: 'host-local', dataDir: `${of.machine.folder}/host-local`, ranges, routes }
  // the oldest version in which results are as they are now
  return { cniVersion: '0.3.0', name: kind, plugins: [{ ...first, ipam }] }
}

function podOf(name: string): object {
  const status = name === 'found' ? { phase: 'Running', podIPs: addressesOf(name).map((ip) => ({ ip })) } : { phase: 'Pending' }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { app: name } },
    spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
    status,
  }
}

function addressesOf(pod: string): readonly string[] {
  return FAMILIES.map((family) => of.address(pod, family))
}

/** The node's end of the pod's veth. */
function vethOf(pod: string): string {
  const index = of.machine.sh(`ip netns exec ${pod} cat /sys/class/net/eth0/iflink`).trim()
  return of.machine.sh(`ip -o link show | sed -n 's/^${index}: \\([^@]*\\)@.*/\\1/p'`).trim()
}

function udpService(name: keyof typeof SERVICES, [address, port]: readonly [string, number]): readonly unknown[] {
  const metadata = { name, namespace: 'default' }
  const spec = { clusterIP: SERVICES[name], clusterIPs: [SERVICES[name]], ports: [{ port: 53, targetPort: port, protocol: 'UDP' }] }
  return [
    { apiVersion: 'v1', kind: 'Service', metadata, spec },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...metadata, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports: [{ port, protocol: 'UDP' }],
      endpoints: [{ addresses: [address], conditions: { ready: true } }],
    },
  ]
}

/** Says back what it hears. */
async function echo(place: string, address: string): Promise<void> {
  const script = `const s = require('dgram').createSocket('udp4'); s.on('message', (m, r) => s.send(m, r.port, r.address)); s.bind(${ECHO}, '${address}', () => console.log('listens'))`
  const child = of.machine.spawn(['ip', 'netns', 'exec', place, process.execPath, '-e', script])
  children.push(child)
  await new Promise((resolve) => child.stdout?.once('data', resolve))
}

const children: ReturnType<ChainedNode['machine']['spawn']>[] = []

/** What a datagram to the service brings back. */
function asks(place: string | undefined, service: keyof typeof SERVICES): string {
  const script = `const s = require('dgram').createSocket('udp4'); const end = (what) => { console.log(what); process.exit() };
    s.on('message', () => end('answer')).on('error', ({ code }) => end(code)); setTimeout(end, 1000, 'silence');
    s.connect(53, '${SERVICES[service]}', () => s.send('x'))`
  return of.machine.sh(`${place === undefined ? '' : `ip netns exec ${place} `}${process.execPath} -e "${script}"`).trim()
}

beforeAll(async () => {
  of = await ChainedNode.make()
  of.machine.sh(`
    ip link add flannel.1 type vxlan id 1 dev eth0 local ${NODE.v4} dstport 8472 nolearning
    ip addr add 10.3.0.0/32 dev flannel.1
    ip link set flannel.1 up
    ip route add ${FAR.range} via ${FAR.device} dev flannel.1 onlink
    ip neigh add ${FAR.device} lladdr ${FAR.mac} dev flannel.1 nud permanent
    bridge fdb add ${FAR.mac} dev flannel.1 dst ${OUTSIDE.v4}
    ip -n outside link add flannel.1 type vxlan id 1 dev eth0 local ${OUTSIDE.v4} dstport 8472 nolearning
    ip -n outside link set flannel.1 address ${FAR.mac} up
    ip -n outside addr add ${FAR.pod}/32 dev lo
    ip netns exec outside iptables -t raw -A PREROUTING -i eth0 -d ${FAR.pod} -j DROP
    ip netns exec outside sysctl -qw net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.flannel/1.rp_filter=0`)
  of.machine.put('nodes.json', [node('n1', NODE.v4, RANGE), node('n2', OUTSIDE.v4, FAR.range)])
  of.machine.put('felix.json', [felix(of.machine.cgroup)])
  of.writeTheirs(theirs('ptp'))
  of.add('found')
  of.machine.put('pods.json', PODS.map(podOf))
  agent = await of.ready()
  await agent.event('pod.discovered')
  expect(of.add('told').status).toBe(0)
  of.writeTheirs(theirs('bridge'))
  await agent.until('their new list', () => of.types()[0] === 'bridge')
  expect(of.add('bridged').status).toBe(0)
  const [near = ''] = addressesOf('told')
  of.machine.put('services.json', [
    ...udpService('far', [FAR.pod, ECHO]),
    ...udpService('shut', [OUTSIDE.v4, 9]),
    ...udpService('near', [near, ECHO]),
  ])
  await echo('outside', FAR.pod)
  await echo('told', near)
})

afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await of[Symbol.asyncDispose]()
})

test("what the node itself asks a service goes the other plugin's way to pods of other nodes", async () => {
  await expect.poll(() => asks('found', 'near')).toBe('answer')
  expect(['bridged', undefined].map((place) => asks(place, 'near'))).toEqual(['answer', 'answer'])
  expect([...PODS, undefined].map((place) => asks(place, 'far'))).toEqual(['answer', 'answer', 'answer', 'answer'])
})

test('errors of the network about a pod\u2019s packets pass netfilter as its answers do', () => {
  of.machine.sh('iptables -A FORWARD -m conntrack --ctstate INVALID -j DROP')
  expect(PODS.map((pod) => asks(pod, 'shut'))).toEqual(['ECONNREFUSED', 'ECONNREFUSED', 'ECONNREFUSED'])
  of.machine.sh('iptables -D FORWARD -m conntrack --ctstate INVALID -j DROP')
})

test('what has no route does not circle', () => {
  const [address = ''] = addressesOf('told')
  const forwarded = (): number => Number(of.machine.sh(`awk '/^Ip:/ { print $7 }' /proc/net/snmp | tail -1`))
  const during = (work: () => unknown): readonly unknown[] => {
    const before = forwarded()
    return [work(), forwarded() - before]
  }
  of.machine.sh('ip route del default')
  const nowhere = during(() => of.machine.sh('ip netns exec told ping -c 1 -W 1 203.0.113.9 | grep -c Unreachable || true').trim())
  of.machine.sh(`ip route add default via ${OUTSIDE.v4}; ip route del ${address}`)
  const lost = during(() => asks(undefined, 'near'))
  of.machine.sh(`ip route add ${address} dev ${vethOf('told')}`)
  expect({ nowhere, lost }).toEqual({ nowhere: ['1', 0], lost: ['silence', 1] })
})

test('a sandbox that is attached again has the new veth', () => {
  const [v4 = '', v6 = ''] = addressesOf('told')
  of.machine.sh(`
    ip link del ${vethOf('told')}
    ip link add veththenew type veth peer name eth0 netns told
    ip link set veththenew up
    ip -n told link set eth0 up
    ip -n told addr add ${v4}/32 dev eth0
    ip -n told addr add ${v6}/128 dev eth0 nodad
    ip addr add 10.3.0.1/32 dev veththenew
    ip addr add fd00:3::1/128 dev veththenew nodad
    ip route add ${v4} dev veththenew
    ip route add ${v6} dev veththenew
    ip -n told route add 10.3.0.1 dev eth0
    ip -n told route add fd00:3::1 dev eth0
    ip -n told route add default via 10.3.0.1
    ip -n told route add default via fd00:3::1`)
  expect(of.ask('ADD', 'told', { timeoutSeconds: 3 })).toMatchObject({ status: 0 })
  expect([of.pings('told', OUTSIDE.v4), asks('found', 'near')]).toEqual([true, 'answer'])
})

test('a forgotten pod that runs stays cut off, with the next agent too, and is found by its own veth [once]', async () => {
  const loose = (): readonly string[] => {
    const answered = of.pingsOf(PODS.map((pod) => ({ from: pod, address: OUTSIDE.v4 })))
    return PODS.filter((_, at) => answered[at] === true)
  }
  const veth = vethOf('found')
  const veths = PODS.map(vethOf)
  const bared = (): readonly unknown[] =>
    agent.events('hook.detached').filter(({ hook }) => veths.includes(String(hook).replace(/\/.*/, '')))
  await expect.poll(loose).toEqual(PODS)
  of.machine.put('pods.json', [])
  await expect.poll(loose).toEqual([])
  expect(bared()).toEqual([])
  await agent.kill()
  of.machine.sh(`
    ip netns add twin
    ip link add twin0 type veth peer name eth0 netns twin
    ip link set twin0 up
    ip -n twin link set eth0 up
    ip -n twin addr add ${of.address('found', 'v4')}/32 dev eth0
    iptables -A FORWARD -i veth+ -p tcp --dport 443 -j DROP`)
  agent = await of.ready()
  expect(bared()).toEqual([])
  expect(loose()).toEqual([])
  of.machine.put('pods.json', PODS.map(podOf))
  await expect.poll(loose).toEqual(PODS)
  expect(await agent.event('pod.discovered')).toMatchObject({ pod: 'default/found', iface: veth })
  expect(await agent.event('pod.duplicated')).toMatchObject({ pod: 'default/found', iface: veth, others: ['twin0'] })
  // its first look, a minute before the next
  expect(await agent.event('firewall.detected')).toMatchObject({ what: 'packets of pods to other machines', chain: 'FORWARD', by: 'rule' })
  of.machine.sh('ip netns del twin; iptables -F FORWARD')
})

describe("rules of the node's devices for what they forward", () => {
  const policy = (name: string, order: number, egress: readonly Fields[]): unknown =>
    globalPolicy(name, {
      order,
      selector: 'has(host)',
      applyOnForward: true,
      types: ['Ingress', 'Egress'],
      ingress: [{ action: 'Allow' }],
      egress,
    })
  const allowed = policy('all', 1000, [{ action: 'Allow' }])
  const denied = policy('no-way-out', 10, [{ action: 'Deny', source: { selector: `app in {'told', 'bridged'}` } }])
  const reached = (): readonly boolean[] =>
    of.pingsOf(FAMILIES.flatMap((family) => PODS.map((pod) => ({ from: pod, address: OUTSIDE[family] }))))

  const ALL = [...PODS, ...PODS].map(() => true)

  beforeAll(async () => {
    const programs = agent.events('programs.retired').length
    of.machine.put('hosts.json', [hostEndpoint('eth', { node: 'n1', interfaceName: 'eth0' }), allowed])
    await agent.event('programs.retired', programs + 1)
  })

  test.each([
    ['as they are', ''],
    ['masqueraded by the other plugin', '-s 10.0.0.0/8 ! -d 10.0.0.0/8 -j MASQUERADE'],
  ])("hold for pods' packets, %s", async (_, rule) => {
    if (rule !== '') of.machine.sh(`iptables -t nat -A POSTROUTING ${rule}`)
    await expect.poll(reached).toEqual(ALL)
    of.machine.put('denied.json', [denied])
    await expect.poll(reached).toEqual([false, false, true, false, false, true])
    of.machine.put('denied.json', [])
    await expect.poll(reached).toEqual(ALL)
    if (rule !== '') of.machine.sh(`iptables -t nat -D POSTROUTING ${rule}`)
  })
})
