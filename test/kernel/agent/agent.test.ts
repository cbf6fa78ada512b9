// SPDX-License-Identifier: Apache-2.0
/** The whole agent on a node of its own: start, change, death and restart, removal. Layer: test. */
import { existsSync, readdirSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BpfMap, cgroupQuery } from '#native'
import type { LogLine, ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { felix, node, pod, service, slice } from './manifests.ts'
import { CONNECT_PINS, hookPins, links, makeNode, PINS, plug, POD_A, POD_B, rows } from './node.ts'

let machine: ScratchNode

beforeEach(async () => {
  machine = await makeNode()
})

afterEach(async () => {
  await machine[Symbol.asyncDispose]()
})

describe('start', () => {
  test('everything that is wanted is in the kernel when it says ready', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    expect(Object.keys(links(machine)).sort()).toEqual([...CONNECT_PINS, ...hookPins('eth0', POD_A)].sort())
    // ClusterIP and node port; the backend, also as one of this node's; two nodes, the pod, loopback twice and the
    // service; two devices
    expect([
      await rows(machine, 'np_frontends'),
      await rows(machine, 'np_backends'),
      await rows(machine, 'np_addrs'),
      await rows(machine, 'np_ifaces'),
    ]).toEqual([2, 2, 6, 2])
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
    await expect.poll(() => get('9099/readiness')).toMatch(/^200 .*"ready":true/)
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
      /^netplane_attached_hooks 13$/m,
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

describe('a Node that is in no manifest', () => {
  test('is logged, and nothing is written until it comes', async () => {
    const nodes = [node('n1', '192.0.2.1', '10.1.1.0/24'), node('n2', '192.0.2.2', '10.1.2.0/24')]
    const before = machine.sh('ip route; cat /proc/sys/net/ipv4/ip_forward')
    machine.put('nodes.json', nodes.slice(1))
    const agent = machine.agent()
    expect((await agent.event('node.lost'))['reason']).toBe('there is no Node n1 in the sources')
    machine.put('more.json', [pod('b', '10.1.1.6')])
    machine.put('felix.json', [felix(machine.cgroup, { noSuchField: 1 })])
    // so the agent has taken this change, and all before it
    await agent.event('object.rejected')
    expect(existsSync(machine.path(PINS))).toBe(false)
    expect(machine.sh('ip route; cat /proc/sys/net/ipv4/ip_forward')).toBe(before)
    machine.put('nodes.json', nodes)
    await agent.event('dataplane.ready')
    expect(agent.events('node.lost')).toHaveLength(1)
  })

  test('that is deleted while the agent runs stays in force', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    const before = links(machine)
    machine.put('nodes.json', [node('n2', '192.0.2.2', '10.1.2.0/24')])
    expect((await agent.event('node.lost'))['reason']).toMatch(/last good state stays in force$/)
    machine.put('web.json', [service, slice('10.1.1.5', '10.1.1.9')])
    // each also as one of this node's
    await expect.poll(() => rows(machine, 'np_backends')).toBe(4)
    expect(links(machine)).toEqual(before)
    expect(machine.sh('ip route show proto 80')).toContain('10.1.2.0/24')
  })

  test('is an error of --print-desired', () => {
    expect(machine.command('--print-desired', '--node', 'nope', '--resources', machine.resources)).toEqual({
      status: 1,
      output: 'netplane-agent: there is no Node nope in the sources\n',
    })
  })
})

describe('restart', () => {
  test('after SIGKILL with nothing changed nothing is written', async () => {
    const first = machine.agent()
    await first.event('dataplane.ready')
    const before = links(machine)
    await first.kill()
    expect(links(machine)).toEqual(before)
    const second = machine.agent()
    expect(await second.event('dataplane.adopted')).toMatchObject({ adopted: { programs: true, hooks: 4, connect: 9 }, written: {} })
    await second.event('dataplane.ready')
    expect(links(machine)).toEqual(before)
    expect(second.events('hook.attached')).toEqual([])
  })

  test('what changed meanwhile is put right', async () => {
    const first = machine.agent()
    await first.event('dataplane.ready')
    await first.kill()
    machine.sh(`ip link del ${POD_A}`)
    plug(machine, POD_B)
    machine.put('pods.json', [pod('b', '10.1.1.6')])
    machine.put('web.json', [service, slice('10.1.1.6', '10.1.1.7')])
    const second = machine.agent()
    await second.event('dataplane.ready')
    expect(Object.keys(links(machine)).sort()).toEqual([...CONNECT_PINS, ...hookPins('eth0', POD_B)].sort())
    expect([await rows(machine, 'np_backends'), await rows(machine, 'np_ifaces')]).toEqual([4, 2])
  })

  test('a clean stop leaves the data plane at work', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    const before = links(machine)
    expect(await agent.stop()).toBe(0)
    expect(links(machine)).toEqual(before)
  })
})

describe('changes', () => {
  test('of a service reach the map', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    const map = BpfMap.openPin(machine.path(`${PINS}/maps/np_backends`))
    const second = Buffer.from(map.nextKey(undefined) ?? [])
    second.writeUInt32LE(1, 8)
    machine.put('web.json', [service, slice('10.1.1.5', '10.1.1.9')])
    await agent.until('the second backend', () => map.lookup(second) !== undefined)
    machine.put('web.json', [service, slice('10.1.1.5')])
    await agent.until('its removal', () => map.lookup(second) === undefined)
    map.close()
  })

  test('reach the kernel also while other programs are being loaded', async () => {
    const say = (spec: Readonly<Record<string, unknown>>): void => {
      machine.put('felix.json', [felix(machine.cgroup, spec)])
    }
    say({ interfaceExclude: 'eth0' })
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    say({ interfaceExclude: 'eth0', bpfConnectTimeLoadBalancing: 'Disabled' })
    machine.put('web.json', [service, slice('10.1.1.5', '10.1.1.9')])
    // the last change: programs are on a device once rows of changes before it are in the maps
    say({ bpfConnectTimeLoadBalancing: 'Disabled' })
    await agent.event('programs.retired')
    const of = (wanted: (line: LogLine) => boolean): number => agent.lines.findIndex(wanted)
    const attached = of(({ event, hook }) => event === 'hook.attached' && String(hook).startsWith('eth0'))
    const loaded = of((line) => line === agent.events('programs.ready')[1])
    expect([attached > 0, attached < loaded]).toEqual([true, true])
    expect(await rows(machine, 'np_backends')).toBe(4)
  })

  test('of interfaces are followed: a pod comes, and another one again under the same name', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    machine.put('more.json', [pod('b', '10.1.1.6')])
    plug(machine, POD_B)
    await agent.until('the new pod', () => hookPins(POD_B).every((pin) => pin in links(machine)))
    // programs are on a device of ours before its pod is known
    await expect.poll(() => rows(machine, 'np_addrs')).toBe(7)
    machine.sh(`ip link del ${POD_A}`)
    plug(machine, POD_A)
    const ifindex = Number(machine.sh(`ip -o link show ${POD_A} | cut -d: -f1`))
    await agent.until('the pod again', () => links(machine)[`${POD_A}:ingress`]?.endsWith(` ${ifindex}`) === true)
  })

  test('of a pod that goes are taken back, its programs with its veth', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    machine.drop('pods.json')
    const counts = async (): Promise<number[]> => [await rows(machine, 'np_addrs'), await rows(machine, 'np_ifaces')]
    await expect.poll(counts).toEqual([5, 2])
    expect(hookPins(POD_A).filter((pin) => pin in links(machine))).toEqual(hookPins(POD_A))
    machine.sh(`ip link del ${POD_A}`)
    await agent.event('hook.detached', 2)
    await agent.until('its hooks to go', () => !hookPins(POD_A).some((pin) => pin in links(machine)))
    await expect.poll(counts).toEqual([5, 1])
  })

  test('of the configuration swap the programs and drop the old ones', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    const before = links(machine)
    machine.put('felix.json', [felix(machine.cgroup, { bpfConnectTimeLoadBalancing: 'Disabled' })])
    await agent.event('programs.retired')
    // switched off they go on serving the node's own addresses
    expect(Object.keys(links(machine)).sort()).toEqual([...CONNECT_PINS, ...hookPins('eth0', POD_A)].sort())
    for (const pin of ['eth0:ingress', 'cgroup:connect4']) {
      const [link, program] = links(machine)[pin]?.split(' ') ?? []
      expect(link).toBe(before[pin]?.split(' ')[0])
      expect(program).not.toBe(before[pin]?.split(' ')[1])
    }
    expect(readdirSync(machine.path(`${PINS}/programs`))).toHaveLength(1)
    expect(await rows(machine, 'np_backends')).toBe(2)
    expect(cgroupQuery(machine.cgroup, 'connect4')).toHaveLength(1)
  })
})

test('--cleanup leaves nothing and says what it took', async () => {
  const before = machine.sh('cat /proc/sys/net/ipv4/ip_forward; ip route')
  const agent = machine.agent()
  await agent.event('dataplane.ready')
  await agent.stop()
  const { status, output } = machine.cleanup()
  expect(status).toBe(0)
  for (const what of [
    'eth0/ingress',
    'cgroup/connect4',
    'route 10.1.2.0/24',
    'np_ct',
    'restored sysctl net/ipv4/ip_forward',
    `folder ${machine.state}`,
  ])
    expect(output).toContain(what)
  expect(machine.sh('cat /proc/sys/net/ipv4/ip_forward; ip route')).toBe(before)
  expect(existsSync(machine.path(PINS))).toBe(false)
  expect(cgroupQuery(machine.cgroup, 'connect4')).toEqual([])
  expect(machine.sh('bpftool net').match(/from_|to_/)).toBeNull()
  expect(existsSync(machine.state)).toBe(false)
  expect(machine.cleanup()).toEqual({ status: 0, output: 'there was nothing to remove\n' })
  // as where the mount of cgroup2 is away already, or none has ever been made
  for (const cgroup of [machine.folder, machine.path('none')])
    expect(machine.command('--cleanup', '--state-dir', machine.state, '--cgroup', cgroup)).toMatchObject({ status: 0 })
})

test('objects that the kernel refuses leave the node as it was', async () => {
  machine.sh(
    `mkdir ${machine.folder}/objects; for name in workload host connect; do echo nonsense > ${machine.folder}/objects/$name.bpf.o; done`,
  )
  const agent = machine.agent('--objects', `${machine.folder}/objects`)
  await agent.event('programs.rejected', 2)
  expect(machine.sh('ip route show proto 80')).toBe('')
  expect(existsSync(`${machine.state}/sysctls.json`)).toBe(false)
  expect(agent.events('hook.attached')).toEqual([])
  expect(await agent.stop()).toBe(0)
})
