// SPDX-License-Identifier: Apache-2.0
/** What settings and objects say beyond the usual, from outside: where node ports are, which backend, which nodes may
 * use the tunnel. Root. Layer: test. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hostPort } from '#lib/base/ip.ts'
import { endpointText, type Endpoint } from '../../../lab/tools/address.ts'
import { l3, tunnel, udp } from '../../../testkit/packets/packet.ts'
import {
  FAMILIES,
  NODES,
  NODE_PORT,
  nodeAddress,
  podAddress,
  POD_PORT,
  PROTOS,
  serviceAddress,
  World,
  type Family,
  type NodeName,
  type PodName,
  type ServiceWish,
  type Wishes,
} from './world.ts'

/** Other settings are other programs, and loading them on three nodes takes its time. */
const SOON = { timeout: 45_000 }
const BASE: Wishes = { pools: { vxlanMode: 'CrossSubnet', natOutgoing: true }, endpoints: ['b-1'] }
const world = new World('settings')

beforeAll(() => world.up(BASE))
afterAll(() => world.down())

function entry(address: string): Endpoint[] {
  return PROTOS.map((proto) => ({ proto, address, port: NODE_PORT }))
}

function inside(address: (family: Family) => string, port = 80): Endpoint[] {
  return FAMILIES.flatMap((family) => PROTOS.map((proto) => ({ proto, address: address(family), port })))
}

/** The pods that answer, or why none does, each once and sorted. */
async function answered(from: string, to: Endpoint): Promise<string[]> {
  const answers = await world.ask(from, to, { timeoutMs: 500 })
  return [...new Set(answers.map((one) => one.split(' <')[0] ?? ''))].sort()
}

/** Waits until all of these are answered so from there. */
async function become(from: string, to: readonly Endpoint[], wanted: readonly string[]): Promise<void> {
  for (const one of to)
    await expect.poll(() => answered(from, one), { ...SOON, message: `${from} to ${one.proto} ${one.address}` }).toEqual(wanted)
}

/** A place that has no service refuses datagrams as often as the kernel likes. */
async function closed(from: string, to: readonly Endpoint[]): Promise<void> {
  for (const one of to) {
    const failures = one.proto === 'tcp' ? /^ECONNREFUSED$/ : /^(ECONNREFUSED|TIMEOUT)(,TIMEOUT)?$/
    await expect
      .poll(async () => (await answered(from, one)).join(), { ...SOON, message: `${from} to ${one.proto} ${one.address}` })
      .toMatch(failures)
  }
}

describe('nodePortAddresses', () => {
  const host = (address: string): string => `${address}/${address.includes(':') ? 128 : 32}`
  const own = FAMILIES.map((family) => nodeAddress('a', family))
  const second = ['172.28.1.99', 'fd00:28:1::99']
  const loopback = ['127.0.0.1', '::1']

  /** Of node a; loopback is asked by TCP from the node itself. */
  async function served(open: readonly string[]): Promise<void> {
    for (const address of [...own, ...second])
      for (const from of ['client', 'a-2', 'node/a'])
        if (open.includes(address)) await become(from, entry(address), ['b-1'])
        else await closed(from, entry(address))
    for (const address of loopback)
      if (open.includes(address)) await become('node/a', entry(address).slice(0, 1), ['b-1'])
      else await closed('node/a', entry(address).slice(0, 1))
  }

  test('node ports are served in the ranges only, on loopback too when these have it or there are none', async () => {
    for (const address of second)
      await world.ip('node/a', 'addr', 'add', host(address), 'dev', 'eth0', ...(address.includes(':') ? ['nodad'] : []))
    await served([...own, ...second, ...loopback])
    world.put({ ...BASE, felix: { nodePortAddresses: own.map(host) } })
    await served(own)
    for (const family of FAMILIES) await closed('client', entry(nodeAddress('b', family)))
    world.put({ ...BASE, felix: { nodePortAddresses: [...second.map(host), '127.0.0.0/8', '::1/128'] } })
    await served([...second, ...loopback])
    world.put(BASE)
    await served([...own, ...second, ...loopback])
  })
})

describe('Maglev', () => {
  const BACKENDS: readonly PodName[] = ['a-1', 'a-2', 'b-1', 'c-1']
  const felix = { bpfBackendSelection: 'Maglev' }
  const FLOWS = 48
  let nextPort = 20_000

  /** Ports of the client of which no node has seen a flow. */
  function freshPorts(): readonly number[] {
    nextPort += FLOWS
    return Array.from({ length: FLOWS }, (_, index) => nextPort + index)
  }

  /** The backend for each of the client's ports, where the flow comes in by this node. */
  async function choices(node: NodeName, family: Family, ports: readonly number[]): Promise<readonly string[]> {
    const to: Endpoint = { proto: 'udp', address: nodeAddress(node, family), port: NODE_PORT }
    return await Promise.all(
      ports.map(async (localPort) => {
        const [first = ''] = await world.ask('client', to, { count: 1, localPort, timeoutMs: 2000 })
        return first.split(' <')[0] ?? ''
      }),
    )
  }

  /** Waits until nodes a and b choose alike, among all; which ports, and what for each. */
  async function agreed(family: Family): Promise<{ readonly ports: readonly number[]; readonly chosen: readonly string[] }> {
    for (let tries = 0; tries < 50; tries++) {
      const ports = freshPorts()
      const [chosen, other] = [await choices('a', family, ports), await choices('b', family, ports)]
      if (chosen.join() === other.join() && [...new Set(chosen)].sort().join() === BACKENDS.join()) return { ports, chosen }
    }
    throw new Error(`IPv${family}: nodes a and b do not choose alike`)
  }

  test('any node sends a flow to the same backend, and one that goes takes only its own share along', async () => {
    world.put({ ...BASE, endpoints: BACKENDS, felix })
    const before = await Promise.all(FAMILIES.map(agreed))
    world.put({ ...BASE, endpoints: BACKENDS.filter((pod) => pod !== 'b-1'), felix })
    for (const [index, family] of FAMILIES.entries()) {
      const { ports, chosen } = before[index] ?? { ports: [], chosen: [] }
      await expect.poll(async () => (await choices('c', family, freshPorts())).includes('b-1'), SOON).toBe(false)
      // c has never seen these flows: what it chooses is what the table says
      const after = await choices('c', family, ports)
      expect([...new Set(after)].sort()).toEqual(['a-1', 'a-2', 'c-1'])
      const moved = chosen.filter((pod, at) => pod !== 'b-1' && pod !== after[at])
      expect(moved.length, `IPv${family} ${moved.join()}`).toBeLessThanOrEqual(FLOWS / 8)
    }
    world.put(BASE)
  })
})

describe('the node’s health as kube-proxy has it', () => {
  test('is served on port 10256 of every node, to any client', async () => {
    for (const node of NODES)
      for (const family of FAMILIES)
        for (const [path, field] of [
          ['healthz', '"nodeEligible":true'],
          ['livez', '"healthy":true'],
        ] as const)
          for (const from of ['client', 'far']) {
            const url = `http://${hostPort(nodeAddress(node, family), 10256)}/${path}`
            const [page] = await world.order(from, { do: 'get', url })
            expect(page, `${from} ${url}`).toMatchObject({ status: 200, text: expect.stringContaining(field) as string })
          }
  })
})

describe('the agent’s own health', () => {
  const status = async (place: string, address: string): Promise<number | undefined> => {
    const [page] = await world.order(place, { do: 'get', url: `http://${hostPort(address, 9099)}/liveness` })
    return page !== undefined && 'status' in page ? page.status : undefined
  }
  /** Of node a: asked from itself by loopback, from itself and from elsewhere by its address. */
  const seen = async (): Promise<readonly (number | undefined)[]> => {
    const own = nodeAddress('a', 4)
    return [await status('node/a', '127.0.0.1'), await status('node/a', own), await status('client', own)]
  }

  test('is served where healthHost says, and nowhere when healthEnabled is false', async () => {
    expect(await seen()).toEqual([200, undefined, undefined])
    world.put({ ...BASE, felix: { healthHost: '0.0.0.0' } })
    await expect.poll(seen, SOON).toEqual([200, 200, 200])
    world.put({ ...BASE, felix: { healthHost: '0.0.0.0', healthEnabled: false } })
    await expect.poll(seen, SOON).toEqual([undefined, undefined, undefined])
    world.put(BASE)
    await expect.poll(seen, SOON).toEqual([200, undefined, undefined])
  })
})

describe('default/kubernetes', () => {
  const api = (endpoints: readonly PodName[]): ServiceWish => ({
    name: 'kubernetes',
    address: (family) => (family === 4 ? '10.96.28.44' : 'fd00:96:28::44'),
    endpoints,
  })
  const places = ['a-2', 'node/a', 'node/c']

  test('keeps its last endpoints until there are others', async () => {
    const to = inside(api([]).address)
    world.put({ ...BASE, others: [api(['a-1'])] })
    for (const place of places) await become(place, to, ['a-1'])
    world.put({ ...BASE, endpoints: [], others: [api([])] })
    // the other service, of the same change, has none now
    for (const place of places) await become(place, inside(serviceAddress), ['ECONNREFUSED'])
    for (const place of places) for (const one of to) expect(await answered(place, one)).toEqual(['a-1'])
    world.put({ ...BASE, others: [api(['b-1'])] })
    for (const place of places) await become(place, to, ['b-1'])
    world.put(BASE)
    for (const place of places) await become(place, inside(serviceAddress), ['b-1'])
  })
})

describe('bpfConnectTimeLoadBalancing', () => {
  const places = ['node/a', 'a-2']
  const questions = places.flatMap((place) => inside(serviceAddress).map((to) => ({ place, to })))
  const all = questions.length / PROTOS.length

  /** Asks by a socket that is not connected: the pod that answers, and from which address the socket sees it. */
  async function datagram(place: string, to: Endpoint): Promise<string> {
    const script = `const socket = require('node:dgram').createSocket('udp${to.address.includes(':') ? 6 : 4}')
      socket.on('message', (message, from) => socket.close(() => console.log(JSON.parse(message).pod, from.address, from.port)))
      socket.send('{}\\n', ${to.port}, '${to.address}')
      setTimeout(() => process.exit(1), 2000).unref()`
    return (await world.lab.mustRun(place, [process.execPath, '-e', script])).trim()
  }

  /** How many sockets were sent to a backend when one of this protocol asked the service, of each family, from
   * everywhere on node a. */
  async function sentAtOnce(proto: 'tcp' | 'udp'): Promise<number> {
    const count = (): Promise<number> => world.metric('a', 'netplane_packets_total{event="connect"}')
    const before = await count()
    for (const { place, to } of questions.filter((one) => one.to.proto === proto))
      if (proto === 'tcp') expect(await world.ask(place, to, { count: 1 })).toEqual([expect.stringMatching(/^b-1 </)])
      else expect(await datagram(place, to)).toBe(`b-1 ${to.address} ${to.port}`)
    return (await count()) - before
  }

  test('Enabled: sockets are sent to a backend when they connect, or send a datagram; TCP: streams only; Disabled: none', async () => {
    for (const place of places) await become(place, inside(serviceAddress), ['b-1'])
    expect([await sentAtOnce('tcp'), await sentAtOnce('udp')]).toEqual([all, 0])
    world.put({ ...BASE, felix: { bpfConnectTimeLoadBalancing: 'Enabled' } })
    await expect.poll(() => sentAtOnce('udp'), SOON).toBe(all)
    expect(await sentAtOnce('tcp')).toBe(all)
    world.put({ ...BASE, felix: { bpfConnectTimeLoadBalancing: 'Disabled' } })
    await expect.poll(() => sentAtOnce('udp'), SOON).toBe(0)
    await expect.poll(() => sentAtOnce('tcp'), SOON).toBe(0)
    world.put(BASE)
    await expect.poll(() => sentAtOnce('tcp'), SOON).toBe(all)
  })
})

describe('ipMode of a load balancer’s address', () => {
  const address = (family: Family): string => (family === 4 ? '203.0.113.28' : '2001:db8:113::28')
  const balancer = (ipMode: 'VIP' | 'Proxy'): ServiceWish => ({
    name: 'balanced',
    address: (family) => (family === 4 ? '10.96.28.55' : 'fd00:96:28::55'),
    endpoints: ['b-1'],
    spec: { type: 'LoadBalancer' },
    status: { loadBalancer: { ingress: FAMILIES.map((family) => ({ ip: address(family), ipMode })) } },
  })

  test('Proxy: it is the load balancer that answers there, also to pods and nodes; VIP: our backends do', async () => {
    for (const family of FAMILIES) {
      await world.ip('client', 'addr', 'add', `${address(family)}/${family === 4 ? 32 : 128}`, 'dev', 'lo')
      await world.ip('node/a', 'route', 'add', address(family), 'via', world.client(family))
    }
    await world.serve('client', 80)
    for (const [mode, answer] of [
      ['VIP', 'b-1'],
      ['Proxy', 'client'],
    ] as const) {
      world.put({ ...BASE, others: [balancer(mode)] })
      for (const place of ['a-2', 'node/a']) await become(place, inside(address), [answer])
      for (const place of ['a-2', 'node/a']) await become(place, inside(balancer(mode).address), ['b-1'])
    }
    world.put(BASE)
  })
})

describe('defaultEndpointToHostAction', () => {
  const PORT = 7100
  const own = inside((family) => nodeAddress('a', family), PORT)
  const pod = inside((family) => podAddress('a-2', family), POD_PORT)
  const connections = { own: own.filter(({ proto }) => proto === 'tcp'), pod: pod.filter(({ proto }) => proto === 'tcp') }

  /** What comes of a question by connections that stay, each opened with its first. */
  async function say(from: string, to: readonly Endpoint[], first = false): Promise<readonly unknown[]> {
    const said = to.map((one) => {
      const order = { do: 'say', connection: one.address, timeoutMs: 2000 } as const
      return world.order(from, first ? { ...order, do: 'open', to: endpointText(one) } : order)
    })
    return (await Promise.all(said)).flat()
  }

  test('Drop: a pod does not reach its own node, nor goes on there; it reaches all else, and others reach that, and it them [once]', async () => {
    await world.serve('node/a', PORT)
    await become('a-2', own, ['node/a'])
    expect(await say('a-2', connections.own, true)).toMatchObject([{ pod: 'node/a' }, { pod: 'node/a' }])
    expect(await say('node/a', connections.pod, true)).toMatchObject([{ pod: 'a-2' }, { pod: 'a-2' }])
    world.put({ ...BASE, felix: { defaultEndpointToHostAction: 'Drop' } })
    await become('a-2', own, ['TIMEOUT'])
    expect(await say('a-2', connections.own)).toEqual([{ failed: 'TIMEOUT' }, { failed: 'TIMEOUT' }])
    expect(await say('node/a', connections.pod)).toMatchObject([{ pod: 'a-2' }, { pod: 'a-2' }])
    for (const place of ['b-1', 'node/b', 'client', 'node/a']) await become(place, own, ['node/a'])
    await become('node/a', pod, ['a-2'])
    await become('a-2', [...inside(serviceAddress), ...entry(nodeAddress('a', 4))], ['b-1'])
    world.put(BASE)
    await become('a-2', own, ['node/a'])
  })
})

describe('the tunnel', () => {
  const USUAL = { port: 4789, vni: 0x4e50 }
  let nextPort = 31_000

  interface Sent {
    readonly from: NodeName | 'client'
    readonly to: NodeName
    readonly by?: typeof USUAL
  }

  /** A datagram for a pod of the node, from a pod of the sender, in a packet of the tunnel. */
  async function send(family: Family, { from, to, by: { port, vni } = USUAL }: Sent): Promise<void> {
    const [place, source] = from === 'client' ? [from, world.client(family)] : [`node/${from}`, nodeAddress(from, family)]
    const [outer, pod] = [nodeAddress(to, family), podAddress(from === 'client' ? 'b-1' : `${from}-1`, family)]
    const inner = udp(hostPort(pod, nextPort++), hostPort(podAddress(`${to}-1`, family), POD_PORT), { payload: '{}\n' })
    const packet = Buffer.from(l3(tunnel(source, outer, { inner, vni, sport: 5000, port }))).toString('hex')
    // as a kernel's: no socket of a node may send there
    const [domain, address] = family === 4 ? ['AF_INET', 'sockaddr_in(0, $to)'] : ['AF_INET6', 'pack_sockaddr_in6(0, $to)']
    const script = `$to = Socket::inet_pton(${domain}, '${outer}'); socket(S, ${domain}, SOCK_RAW, 255) or die $!;
      send(S, pack('H*', '${packet}'), 0, ${address}) or die $!`
    await world.lab.mustRun(place, ['perl', '-MSocket', '-e', script])
  }

  const taken = (node: NodeName): Promise<number> => world.metric(node, 'netplane_packets_total{event="tunnel_taken"}')

  test('is for nodes: what a stranger sends in it is dropped and counted [once]', async () => {
    for (const family of FAMILIES) {
      const before = { taken: await taken('a'), dropped: await world.drops('a', 'tunnel_source') }
      await send(family, { from: 'client', to: 'a' })
      await expect.poll(() => world.drops('a', 'tunnel_source'), SOON).toBe(before.dropped + 1)
      expect(await taken('a')).toBe(before.taken)
      await send(family, { from: 'b', to: 'a' })
      await expect.poll(() => taken('a'), SOON).toBe(before.taken + 1)
      expect(await world.drops('a', 'tunnel_source')).toBe(before.dropped + 1)
    }
  })

  test('is another with another vxlanPort and vxlanVNI, and is there again once all nodes have heard', async () => {
    const other = { port: 4790, vni: 77 }
    world.put({ ...BASE, felix: { vxlanPort: other.port, vxlanVNI: other.vni } })
    for (const [from, to] of [
      ['a', 'b'],
      ['b', 'c'],
      ['c', 'a'],
    ] as const) {
      const before = await taken(to)
      const isTaken = async (): Promise<boolean> => {
        await send(4, { from, to, by: other })
        return (await taken(to)) > before
      }
      await expect.poll(isTaken, SOON).toBe(true)
    }
    for (const family of FAMILIES) {
      const before = await taken('a')
      for (const by of [USUAL, { ...USUAL, vni: other.vni }, { ...other, vni: USUAL.vni }, other])
        await send(family, { from: 'b', to: 'a', by })
      await expect.poll(() => taken('a'), SOON).toBe(before + 1)
      for (const node of ['a', 'c'] as const) await become('client', entry(nodeAddress(node, family)), ['b-1'])
    }
    await become(
      'a-2',
      inside((family) => podAddress('c-1', family), POD_PORT),
      ['c-1'],
    )
    world.put(BASE)
  })
})
