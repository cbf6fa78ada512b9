// SPDX-License-Identifier: Apache-2.0
/** The whole agent on a node of its own: start, change, death and restart, damage by strangers, removal. Layer: test. */
import { existsSync, readdirSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BpfLink, BpfMap, cgroupQuery } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import { ScratchNode } from '../support/scratch-node.ts'

const POD_A = workloadInterface({ namespace: 'default', name: 'a' }, 'npl')
const POD_B = workloadInterface({ namespace: 'default', name: 'b' }, 'npl')
const PINS = 'sys/fs/bpf/netplane'

function node(name: string, address: string, podCIDR: string): unknown {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name },
    spec: { podCIDRs: [podCIDR] },
    status: { addresses: [{ type: 'InternalIP', address }] },
  }
}

function pod(name: string, ip: string): unknown {
  const metadata = { name, namespace: 'default' }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
    status: { phase: 'Running', podIP: ip, podIPs: [{ ip }] },
  }
}

const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    type: 'NodePort',
    clusterIP: '10.96.0.10',
    clusterIPs: ['10.96.0.10'],
    ports: [{ port: 80, targetPort: 8080, nodePort: 30080, protocol: 'TCP' }],
  },
}

function slice(...addresses: readonly string[]): unknown {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web-1', namespace: 'default', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    ports: [{ port: 8080, protocol: 'TCP' }],
    endpoints: addresses.map((address) => ({ addresses: [address], nodeName: 'n1', conditions: { ready: true } })),
  }
}

function felix(cgroup: string, spec: Readonly<Record<string, unknown>> = {}): unknown {
  return {
    apiVersion: 'netplane.io/v3',
    kind: 'FelixConfiguration',
    metadata: { name: 'default' },
    spec: { cgroupV2Path: cgroup, bpfMapSizeConntrack: 4096, ...spec },
  }
}

let machine: ScratchNode

beforeEach(async () => {
  machine = await ScratchNode.make()
  machine.sh(`
    ip link add eth0 type veth peer name wire0
    ip addr add 192.0.2.1/24 dev eth0
    ip link set eth0 up
    ip link set wire0 up`)
  plug(POD_A)
  machine.put('nodes.json', [node('n1', '192.0.2.1', '10.1.1.0/24'), node('n2', '192.0.2.2', '10.1.2.0/24')])
  machine.put('pods.json', [pod('a', '10.1.1.5')])
  machine.put('web.json', [service, slice('10.1.1.5')])
  machine.put('felix.json', [felix(machine.cgroup)])
})

afterEach(async () => {
  await machine[Symbol.asyncDispose]()
})

/** Makes a pod's veth; the pod's own end stays here. */
function plug(iface: string): void {
  machine.sh(
    `ip link add ${iface} type veth peer name ${iface.replace('npl', 'p')}; ip link set ${iface} up; ip link set ${iface.replace('npl', 'p')} up`,
  )
}

/** id of each link, the program on it and its interface, by pin */
function links(): Record<string, string> {
  const folder = machine.path(`${PINS}/links`)
  const entries = readdirSync(folder).flatMap((name): [string, string][] => {
    const link = open(`${folder}/${name}`)
    if (link === undefined) return []
    const { id, programId, ifindex } = link.info()
    link.close()
    return [[name, `${id} ${programId} ${ifindex}`]]
  })
  return Object.fromEntries(entries)
}

/** undefined when it has just gone */
function open(path: string): BpfLink | undefined {
  try {
    return BpfLink.openPin(path)
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  }
}

async function rows(map: string): Promise<number> {
  const opened = BpfMap.openPin(machine.path(`${PINS}/maps/${map}`))
  const { count } = await opened.dump()
  opened.close()
  return count
}

/** links that are on an interface, not cut off from it */
function onInterfaces(): number {
  return Object.entries(links()).filter(([name, link]) => !name.startsWith('cgroup') && !link.endsWith(' 0')).length
}

function detach(): void {
  const link = BpfLink.openPin(machine.path(`${PINS}/links/eth0:ingress`))
  link.detach()
  link.close()
}

const CONNECT_PINS = ['connect4', 'connect6', 'getpeername4', 'getpeername6', 'recvmsg4', 'recvmsg6', 'sendmsg4', 'sendmsg6'].map(
  (hook) => `cgroup:${hook}`,
)

function hookPins(...ifaces: readonly string[]): string[] {
  return ifaces.flatMap((iface) => [`${iface}:egress`, `${iface}:ingress`])
}

describe('start', () => {
  test('everything that is wanted is in the kernel when it says ready', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    expect(Object.keys(links()).sort()).toEqual([...CONNECT_PINS, ...hookPins('eth0', POD_A)].sort())
    // ClusterIP and node port; two nodes and the pod; two devices
    expect([await rows('np_frontends'), await rows('np_backends'), await rows('np_addrs'), await rows('np_ifaces')]).toEqual([2, 1, 3, 2])
    expect(machine.sh('ip route show proto 80').trim()).toBe('10.1.2.0/24 via 192.0.2.2 dev eth0')
    expect(machine.sh('cat /proc/sys/net/ipv4/ip_forward').trim()).toBe('1')
    expect(cgroupQuery(machine.cgroup, 'connect4')).toHaveLength(1)
  })

  test('health and metrics are served where the flags say', async () => {
    const agent = machine.agent('--health-port', '9099', '--metrics-port', '9091')
    await agent.event('dataplane.ready')
    await agent.event('metrics.listening')
    const get = (path: string): string =>
      machine.sh(`${process.execPath} -e 'fetch("http://127.0.0.1:${path}").then((a) => a.text().then((t) => console.log(a.status, t)))'`)
    expect(get('9099/liveness')).toMatch(/^200 .*"live":true/)
    await expect.poll(() => get('9099/readiness'), { timeout: 10_000 }).toMatch(/^200 .*"ready":true/)
    const metrics = get('9091/metrics')
    for (const line of [
      /^netplane_agent_info\{node="n1",version="[^"]+"\} 1$/m,
      /^netplane_synced 1$/m,
      /^netplane_source_available\{source="directory"\} 1$/m,
      /^netplane_drops_total\{reason="no_backend"\} 0$/m,
      /^netplane_packets_total\{event="flow_new"\} \d+$/m,
      /^netplane_map_rows\{map="np_frontends"\} 2$/m,
      /^netplane_map_pending_rows\{map="np_frontends"\} 0$/m,
      /^netplane_map_max_entries\{map="np_ct"\} 4096$/m,
      /^netplane_changes_total\{part="hooks"\} 4$/m,
      /^netplane_failures_total\{part="hooks"\} 0$/m,
      /^netplane_attached_hooks 12$/m,
      /^netplane_apply_seconds_count \d+$/m,
    ])
      expect(metrics).toMatch(line)
  })

  test('a second agent is refused with the pid of the first', async () => {
    const first = machine.agent()
    await first.event('agent.started')
    const second = machine.agent()
    expect(await second.ended()).toBe(1)
    expect(second.events('agent.already-running')[0]?.['by']).toBe(`netplane-agent of node n1, pid ${String(first.pid)}`)
    expect(machine.cleanup()).toMatchObject({ status: 1 })
  })
})

describe('restart', () => {
  test('after SIGKILL with nothing changed nothing is written', async () => {
    const first = machine.agent()
    await first.event('dataplane.ready')
    const before = links()
    await first.kill()
    expect(links()).toEqual(before)
    const second = machine.agent()
    expect(await second.event('dataplane.adopted')).toMatchObject({ adopted: { programs: true, hooks: 4, connect: 8 }, written: {} })
    await second.event('dataplane.ready')
    expect(links()).toEqual(before)
    expect(second.events('hook.attached')).toEqual([])
  })

  test('what changed meanwhile is put right', async () => {
    const first = machine.agent()
    await first.event('dataplane.ready')
    await first.kill()
    machine.sh(`ip link del ${POD_A}`)
    plug(POD_B)
    machine.put('pods.json', [pod('b', '10.1.1.6')])
    machine.put('web.json', [service, slice('10.1.1.6', '10.1.1.7')])
    const second = machine.agent()
    await second.event('dataplane.ready')
    expect(Object.keys(links()).sort()).toEqual([...CONNECT_PINS, ...hookPins('eth0', POD_B)].sort())
    expect([await rows('np_backends'), await rows('np_ifaces')]).toEqual([2, 2])
  })

  test('a clean stop leaves the data plane at work', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    const before = links()
    expect(await agent.stop()).toBe(0)
    expect(links()).toEqual(before)
  })
})

describe('changes', () => {
  test('of a service reach the map', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    const map = BpfMap.openPin(machine.path(`${PINS}/maps/np_backends`))
    const key = map.nextKey(undefined)
    expect(key?.readUInt32LE(8)).toBe(0)
    const second = Buffer.from(key ?? [])
    second.writeUInt32LE(1, 8)
    machine.put('web.json', [service, slice('10.1.1.5', '10.1.1.9')])
    await agent.until('the second backend', () => map.lookup(second) !== undefined)
    machine.put('web.json', [service, slice('10.1.1.5')])
    await agent.until('its removal', () => map.lookup(second) === undefined)
    map.close()
  })

  test('of interfaces are followed: a pod comes, and another one again under the same name', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    machine.put('more.json', [pod('b', '10.1.1.6')])
    plug(POD_B)
    await agent.until('the new pod', () => hookPins(POD_B).every((pin) => pin in links()))
    expect(await rows('np_addrs')).toBe(4)
    machine.sh(`ip link del ${POD_A}`)
    plug(POD_A)
    const ifindex = Number(machine.sh(`ip -o link show ${POD_A} | cut -d: -f1`))
    await agent.until('the pod again', () => links()[`${POD_A}:ingress`]?.endsWith(` ${ifindex}`) === true)
  })

  test('of a pod that goes are taken back', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    machine.drop('pods.json')
    await agent.event('hook.detached', 2)
    await agent.until('its hooks to go', () => !hookPins(POD_A).some((pin) => pin in links()))
    const counts = async (): Promise<number[]> => [await rows('np_addrs'), await rows('np_ifaces')]
    await expect.poll(counts, { timeout: 5000 }).toEqual([2, 1])
  })

  test('of the configuration swap the programs and drop the old ones', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    const before = links()
    machine.put('felix.json', [felix(machine.cgroup, { bpfConnectTimeLoadBalancing: 'Disabled' })])
    await agent.event('programs.retired')
    expect(Object.keys(links()).sort()).toEqual(hookPins('eth0', POD_A).sort())
    expect(links()['eth0:ingress']?.split(' ')[0]).toBe(before['eth0:ingress']?.split(' ')[0])
    expect(readdirSync(machine.path(`${PINS}/programs`))).toHaveLength(1)
    expect(await rows('np_backends')).toBe(1)
    expect(cgroupQuery(machine.cgroup, 'connect4')).toEqual([])
  })
})

describe('what strangers remove is found and put back', () => {
  const damages: readonly (readonly [string, () => void])[] = [
    ['the pin of a link', () => machine.sh('rm /sys/fs/bpf/netplane/links/eth0:ingress')],
    ['a link', detach],
    ['every link, with its folder', () => machine.sh('rm -r /sys/fs/bpf/netplane/links')],
    ['a map’s pin', () => machine.sh('rm /sys/fs/bpf/netplane/maps/np_ct')],
    ['a tail-call array', () => machine.sh('rm /sys/fs/bpf/netplane/programs/*/host-np_tail_in')],
    ['all pins', () => machine.sh('rm -r /sys/fs/bpf/netplane')],
  ]

  test.each(damages)('%s', async (_, damage) => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    const pins = (): string => machine.sh('find /sys/fs/bpf/netplane -type f | sed s,programs/[^/]*,programs, | sort')
    const before = pins()
    damage()
    await agent.event('drift.found')
    await agent.until('the pins to be whole', () => existsSync(machine.path(PINS)) && pins() === before && onInterfaces() === 4)
  })

  test('a route', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    machine.sh('ip route del 10.1.2.0/24')
    await agent.event('drift.found')
    await agent.until('the route', () => machine.sh('ip route show proto 80').includes('10.1.2.0/24'))
  })
})

test('--cleanup leaves nothing and says what it took', async () => {
  const before = machine.sh('cat /proc/sys/net/ipv4/ip_forward; ip route')
  const agent = machine.agent()
  await agent.event('dataplane.ready')
  await agent.stop()
  const { status, output } = machine.cleanup()
  expect(status).toBe(0)
  for (const what of ['eth0/ingress', 'cgroup/connect4', 'route 10.1.2.0/24', 'np_ct', 'sysctl net/ipv4/ip_forward'])
    expect(output).toContain(what)
  expect(machine.sh('cat /proc/sys/net/ipv4/ip_forward; ip route')).toBe(before)
  expect(existsSync(machine.path(PINS))).toBe(false)
  expect(cgroupQuery(machine.cgroup, 'connect4')).toEqual([])
  expect(machine.sh('bpftool net').match(/from_|to_/)).toBeNull()
  expect(existsSync(`${machine.state}/sysctls.json`)).toBe(false)
  expect(machine.cleanup()).toEqual({ status: 0, output: 'there was nothing to remove\n' })
})

test('objects that the kernel refuses leave the node as it was', async () => {
  machine.sh(
    `mkdir ${machine.folder}/objects; for name in workload host connect; do echo nonsense > ${machine.folder}/objects/$name.bpf.o; done`,
  )
  const agent = machine.agent('--objects', `${machine.folder}/objects`)
  await agent.event('programs.refused', 2)
  expect(machine.sh('ip route show proto 80')).toBe('')
  expect(existsSync(`${machine.state}/sysctls.json`)).toBe(false)
  expect(agent.events('hook.attached')).toEqual([])
  expect(await agent.stop()).toBe(0)
})
