// SPDX-License-Identifier: Apache-2.0
/** The connect-time programs at work: attached to a cgroup, with sockets of this process that mean a service.
 * Layer: test. */
import type { Socket as UdpSocket } from 'node:dgram'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:net'
import { catalogue } from '#agent/maps/catalogue.ts'
import { errorCode } from '#lib/base/errors.ts'
import {
  ADDR_LOCAL_POD,
  ADDR_NODE_PORTS,
  ADDR_SELF,
  FRONTEND_NODE_PORT,
  FRONTEND_PODS,
  FRONTEND_TUNNEL,
  LIVE_CHOSEN,
} from '#lib/base/bpf-constants.ts'
import { ANY_V4, ANY_V6, parseAddr } from '#lib/base/ip.ts'
import type { CgroupHook } from '#native'
import { BpfLink, cgroupAttach, cgroupDetach } from '#native'
import type { Loaded } from '../../../testkit/packets/objects.ts'
import { TestMap, loadObject } from '../../../testkit/packets/objects.ts'
import type { KernelFacts } from '../kernel-facts.ts'
import { addrInfo } from '../../../testkit/packets/addr-info.ts'
import { testCfg } from '../../../testkit/packets/runner.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'

const HOOKS = ['connect4', 'connect6', 'sendmsg4', 'sendmsg6', 'recvmsg4', 'recvmsg6', 'getpeername4', 'getpeername6'] as const
const FAMILIES = [
  { bits: 4, local: '127.0.0.1', vip: '10.96.0.10', type: 'udp4' },
  { bits: 6, local: '::1', vip: 'fd00:96::10', type: 'udp6' },
] as const
const PORT = 80
const NODE_PORT = 30080
const TCP = 6
const UDP = 17
const WAIT_MS = HANG_MS

type Family = (typeof FAMILIES)[number]
type Check = (name: string, wrong: string | undefined) => void

/** `cgroup`: a cgroup2 directory with this process in or below it. Leaves nothing attached. */
export async function connectCases(cgroup: string, facts: KernelFacts, check: Check): Promise<void> {
  await attached(cgroup, { facts, on: 1 }, async (loaded) => {
    for (const family of FAMILIES) {
      check(`connect${family.bits}: a TCP connection to a service`, await tcp(loaded, family, { facts, at: clusterIP(family) }))
      check(`sendmsg${family.bits}: a datagram to a service and its answer`, await udp(loaded, family, { facts, at: clusterIP(family) }))
      check(`sendmsg${family.bits}: a socket keeps its backend while that is served`, await steady(loaded, family))
      check(`connect${family.bits}: datagrams of a connected socket are left to their packets`, await connectedUdp(loaded, family))
      check(`connect${family.bits}: so are services that tell clients apart`, await leftAlone(loaded, family, { affinity: 60 }))
      check(`sendmsg${family.bits}: so are those that lead to a node's tunnel port`, await tunnelPort(loaded, family, facts))
      check(`connect${family.bits}: no process sends to a node's tunnel port`, await playsNode(loaded, family, facts))
      check(`sendmsg${family.bits}: nor by a service that is kube-proxy's`, await refusedBySendmsg(loaded, family))
      check(`connect${family.bits}: no address is no node port's where loopback is none`, await noAddress(loaded, family))
      check(
        `connect${family.bits}: so are services that are kube-proxy's on the node`,
        await leftAlone(loaded, family, { flags: FRONTEND_PODS }),
      )
    }
  })
  // sockets of this process are those of a pod
  await attached(cgroup, { facts, on: 1, netns: 'ffffffffffffffff' }, async (loaded) => {
    for (const family of facts.features.netnsCookies ? FAMILIES : []) {
      const at = { ...nodePort(family), host: family.vip }
      check(`connect${family.bits}: a pod that may be sent to itself is left to its packets`, await perhapsItself(loaded, family))
      check(`sendmsg${family.bits}: so is one that was sent to itself before it had rules`, await wasItself(loaded, family))
      check(`connect${family.bits}: a pod's rules see a node port as it was asked for`, await leftAlone(loaded, family, { at }))
      const podsOnly = await tcp(loaded, family, { facts, at: clusterIP(family), flags: FRONTEND_PODS })
      check(`connect${family.bits}: a pod's connection to a service that is kube-proxy's on the node`, podsOnly)
    }
  })
  await attached(cgroup, { facts, on: 0 }, async (loaded) => {
    for (const family of FAMILIES) {
      check(`connect${family.bits}, switched off: a service is left alone`, await leftAlone(loaded, family, {}))
      if (!facts.features.netnsCookies) continue
      const at = nodePort(family)
      check(`connect${family.bits}, switched off: node ports of the node's own addresses`, await tcp(loaded, family, { facts, at }))
      check(`sendmsg${family.bits}, switched off: node ports of the node's own addresses`, await udp(loaded, family, { facts, at }))
      check(`connect${family.bits}, switched off: the node keeps its backend of a node port with affinity`, await keeps(loaded, family))
      const none = { ...at, host: at.frontend }
      check(
        `connect${family.bits}, switched off: no address is loopback's, and its node ports`,
        await tcp(loaded, family, { facts, at: none }),
      )
    }
  })
}

/** Runs with the programs attached, switched on or off for what is not the loopback address. */
async function attached(
  cgroup: string,
  how: { readonly facts: KernelFacts; readonly on: 0 | 1; readonly netns?: string },
  run: (loaded: Loaded) => Promise<void>,
): Promise<void> {
  const { facts, on, netns } = how
  const cfg = { ...testCfg(facts.features), connect_tcp: on, connect_udp: on }
  const loaded = await loadObject('connect', {
    cfg: netns === undefined ? cfg : { ...cfg, netns },
    stubHelpers: facts.missingHelpers,
    without: [...facts.missingHooks],
  })
  const detach = attachAll(loaded, cgroup, facts)
  try {
    await run(loaded)
  } finally {
    detach()
    loaded.object.close()
  }
}

/** Where a client reaches the service, and where its frontend is. */
interface Place {
  readonly host: string
  readonly port: number
  readonly frontend: string
}

function clusterIP(family: Family): Place {
  return { host: family.vip, port: PORT, frontend: family.vip }
}

function nodePort(family: Family): Place {
  return { host: family.local, port: NODE_PORT, frontend: family.bits === 4 ? '0.0.0.0' : '::' }
}

function attachAll(loaded: Loaded, cgroup: string, facts: KernelFacts): () => void {
  const undo = HOOKS.filter((hook) => !facts.missingHooks.has(hook)).map((hook) => attach(loaded, cgroup, hook))
  return () => undo.forEach((step) => step())
}

/** By link where the kernel has those (5.7), else the old way. */
function attach(loaded: Loaded, cgroup: string, hook: CgroupHook): () => void {
  const program = loaded.object.program(hook)
  let link: BpfLink | undefined
  try {
    link = BpfLink.attachCgroup(program, cgroup, hook)
  } catch {
    cgroupAttach(cgroup, hook, program)
  }
  return () => {
    if (link === undefined) cgroupDetach(cgroup, hook, program)
    else link.close()
    program.close()
  }
}

interface Asked {
  readonly facts: KernelFacts
  readonly at: Place
}

interface Service {
  readonly proto: number
  /** of the backends, on the loopback address */
  readonly ports: readonly number[]
  readonly at?: Place
  readonly affinity?: number
  /** enum frontend_flag, besides what follows from the place */
  readonly flags?: number
}

async function publish(loaded: Loaded, family: Family, service: Service): Promise<void> {
  const { host, port, frontend } = service.at ?? clusterIP(family)
  const list = `00000000000000${family.bits}${service.proto.toString(16)}`.slice(-16)
  const addr = parseAddr(family.local)
  const live = new TestMap(loaded, catalogue.np_live)
  await live.clear()
  for (const [slot, backendPort] of service.ports.entries()) {
    new TestMap(loaded, catalogue.np_backends).set({ list, slot }, { addr, node: ANY_V6, port: backendPort, flags: 0 })
    live.set({ list, addr, port: backendPort }, { flags: LIVE_CHOSEN, slot })
  }
  const choice = { list, count: service.ports.length }
  if (frontend !== host) new TestMap(loaded, catalogue.np_addrs).set(parseAddr(host), addrInfo(ADDR_SELF, { flags: ADDR_NODE_PORTS }))
  new TestMap(loaded, catalogue.np_frontends).set(
    { addr: frontend === '0.0.0.0' ? ANY_V4 : parseAddr(frontend), port, proto: service.proto },
    {
      inside: choice,
      outside: choice,
      flags: (service.flags ?? 0) | (frontend === host ? 0 : FRONTEND_NODE_PORT),
      affinity: service.affinity ?? 0,
    },
  )
}

async function tcp(loaded: Loaded, family: Family, how: Asked & Pick<Service, 'flags'>): Promise<string | undefined> {
  const { facts, at, flags = 0 } = how
  const server = createServer((socket) => socket.end('hello')).listen(0, family.local)
  await once(server, 'listening')
  await publish(loaded, family, { proto: TCP, ports: [portOf(server.address())], at, flags })
  const socket = connect({ host: at.host, port: at.port })
  const signal = AbortSignal.timeout(WAIT_MS)
  try {
    await once(socket, 'connect', { signal })
    const peer = socket.remoteAddress
    const came: unknown[] = await once(socket, 'data', { signal })
    const wanted = facts.missingHooks.has(`getpeername${family.bits}`) ? family.local : at.host
    if (peer !== wanted) return `the peer's name is ${peer ?? 'unknown'} instead of ${wanted}`
    return String(came[0]) === 'hello' ? undefined : `came back: ${String(came[0])}`
  } catch (error) {
    return String(error)
  } finally {
    socket.destroy()
    server.close()
  }
}

async function udp(loaded: Loaded, family: Family, how: Asked): Promise<string | undefined> {
  const { facts, at } = how
  const [server, client] = await Promise.all([bound(family), bound(family)])
  server.on('message', (_message, from) => server.send('hello', from.port, from.address))
  await publish(loaded, family, { proto: UDP, ports: [server.address().port], at })
  try {
    client.send('hi', at.port, at.host)
    const came: unknown[] = await once(client, 'message', { signal: AbortSignal.timeout(WAIT_MS) })
    const wanted = facts.missingHooks.has(`recvmsg${family.bits}`) ? family.local : at.host
    const from = came[1]
    const address = typeof from === 'object' && from !== null && 'address' in from ? from.address : undefined
    return address === wanted ? undefined : `the answer comes from ${String(address)} instead of ${wanted}`
  } catch (error) {
    return String(error)
  } finally {
    client.close()
    server.close()
  }
}

/** Many datagrams of one socket: all to one of two backends, and to the other when that one is gone. */
async function steady(loaded: Loaded, family: Family): Promise<string | undefined> {
  const [first, second, client] = await Promise.all([bound(family), bound(family), bound(family)])
  const got: [number, number] = [0, 0]
  first.on('message', () => got[0]++)
  second.on('message', () => got[1]++)
  const ports = [first.address().port, second.address().port]
  const send = async (count: number): Promise<void> => {
    const before = got[0] + got[1]
    for (let number = 0; number < count; number++) client.send('hi', PORT, family.vip)
    const until = Date.now() + WAIT_MS
    while (got[0] + got[1] < before + count && Date.now() < until) await new Promise((resolve) => setTimeout(resolve, 10))
  }
  try {
    await publish(loaded, family, { proto: UDP, ports })
    await send(20)
    if (got[0] * got[1] !== 0 || got[0] + got[1] !== 20) return `20 datagrams went ${got.join(' and ')} to two backends`
    const [stays = 0] = ports.filter((_, at) => got[at] === 0)
    await publish(loaded, family, { proto: UDP, ports: [stays] })
    await send(5)
    return got.includes(5) ? undefined : `when one was gone: ${got.join(' and ')}`
  } finally {
    for (const socket of [first, second, client]) socket.close()
  }
}

/** Connections of the node to its own node port with affinity: all to one backend, whichever others come, and to
 * another when that one is gone. */
async function keeps(loaded: Loaded, family: Family): Promise<string | undefined> {
  const at = nodePort(family)
  const servers = Array.from({ length: 8 }, (_, index) => createServer((socket) => socket.end(String(index))).listen(0, family.local))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const all = servers.map((server) => portOf(server.address()))
  const reached = async (ports: readonly number[]): Promise<number> => {
    await publish(loaded, family, { proto: TCP, ports, at, affinity: 60 })
    const socket = connect({ host: at.host, port: at.port })
    try {
      const came: unknown[] = await once(socket, 'data', { signal: AbortSignal.timeout(WAIT_MS) })
      return all[Number(String(came[0]))] ?? 0
    } finally {
      socket.destroy()
    }
  }
  try {
    const first = await reached(all.slice(0, 2))
    const later: number[] = []
    for (let count = 3; count <= all.length; count++) later.push(await reached(all.slice(0, count).reverse()))
    if (later.some((port) => port !== first)) return `${String(first)}, and when others came ${later.join()}`
    const others = all.filter((port) => port !== first)
    const next = [await reached(others), await reached(all)]
    return others.includes(next[0] ?? 0) && next[0] === next[1] ? undefined : `when it was gone: ${next.join()}`
  } catch (error) {
    return String(error)
  } finally {
    for (const server of servers) server.close()
  }
}

/** No network is behind the service's address here: a socket that is not translated gets an error. */
async function connectedUdp(loaded: Loaded, family: Family): Promise<string | undefined> {
  await publish(loaded, family, { proto: UDP, ports: [9] })
  const socket = createSocket(family.type)
  try {
    socket.connect(PORT, family.vip)
    const came: unknown = await Promise.race([once(socket, 'error'), once(socket, 'connect')])
    return Array.isArray(came) && came[0] instanceof Error ? undefined : `connected to ${socket.remoteAddress().address}`
  } catch (error) {
    return errorCode(error) === 'ENETUNREACH' ? undefined : String(error)
  } finally {
    socket.close()
  }
}

/** As far as the packet path, which drops such. */
async function tunnelPort(loaded: Loaded, family: Family, { features }: KernelFacts): Promise<string | undefined> {
  new TestMap(loaded, catalogue.np_addrs).set(parseAddr(family.local), addrInfo(ADDR_SELF))
  await publish(loaded, family, { proto: UDP, ports: [testCfg(features).tunnel_port] })
  const socket = await bound(family)
  try {
    const error = await new Promise<unknown>((resolve) => socket.send('hi', PORT, family.vip, resolve))
    return error instanceof Error ? undefined : 'sent'
  } finally {
    socket.close()
  }
}

/** kube-proxy would send it on to a node's tunnel port, as from this node. */
async function refusedBySendmsg(loaded: Loaded, family: Family): Promise<string | undefined> {
  await publish(loaded, family, { proto: UDP, ports: [9], flags: FRONTEND_PODS | FRONTEND_TUNNEL })
  const socket = await bound(family)
  try {
    const error = await new Promise<unknown>((resolve) => socket.send('hi', PORT, family.vip, resolve))
    return errorCode(error) === 'EPERM' ? undefined : String(error)
  } finally {
    socket.close()
  }
}

/** Nor by a connected socket; to the same port of others it does. */
async function playsNode(loaded: Loaded, family: Family, { features }: KernelFacts): Promise<string | undefined> {
  const port = testCfg(features).tunnel_port
  const addrs = new TestMap(loaded, catalogue.np_addrs)
  const sent = async (connected: boolean): Promise<string> => {
    const socket = await bound(family)
    try {
      const error = await new Promise<unknown>((resolve) => {
        if (!connected) {
          socket.send('hi', port, family.local, resolve)
          return
        }
        socket.once('error', resolve)
        socket.connect(port, family.local, (failed?: Error) => {
          if (failed === undefined) socket.send('hi', resolve)
          else resolve(failed)
        })
      })
      return error instanceof Error ? (errorCode(error) ?? error.message) : 'sent'
    } finally {
      socket.close()
    }
  }
  addrs.set(parseAddr(family.local), addrInfo(ADDR_SELF))
  const toNode = [await sent(false), await sent(true)].join()
  addrs.delete(parseAddr(family.local))
  const toOther = [await sent(false), await sent(true)].join()
  const wanted = 'EPERM,EPERM, else sent,sent'
  const seen = `${toNode}, else ${toOther}`
  return seen === wanted ? undefined : `${seen} instead of ${wanted}`
}

async function leftAlone(loaded: Loaded, family: Family, service: Pick<Service, 'affinity' | 'at' | 'flags'>): Promise<string | undefined> {
  await publish(loaded, family, { proto: TCP, ports: [9], ...service })
  const { host, port } = service.at ?? clusterIP(family)
  const socket = connect({ host, port })
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(WAIT_MS) })
    return 'connected'
  } catch (error) {
    return errorCode(error) === 'ENETUNREACH' ? undefined : String(error)
  } finally {
    socket.destroy()
  }
}

/** Rules of the cluster's administrator are asked of that. Other backends a socket gets at once. */
async function perhapsItself(loaded: Loaded, family: Family): Promise<string | undefined> {
  const [addrs, own] = [new TestMap(loaded, catalogue.np_addrs), parseAddr(family.local)]
  const attempt = async (info: Parameters<typeof addrInfo>[1]): Promise<string> => {
    addrs.set(own, addrInfo(ADDR_LOCAL_POD, info))
    const left = await leftAlone(loaded, family, {})
    return left ?? 'left alone'
  }
  try {
    const outcomes = [await attempt({ ingress: '00000000000000aa' }), await attempt({ egress: '00000000000000aa' }), await attempt({})]
    const wanted = `left alone, left alone, Error: connect ECONNREFUSED ${family.vip}:${PORT}`
    return outcomes.join(', ') === wanted ? undefined : `${outcomes.join(', ')} instead of ${wanted}`
  } finally {
    addrs.delete(own)
  }
}

/** The socket remembers its backend. No network is behind the service's address: what is left alone is an error. */
async function wasItself(loaded: Loaded, family: Family): Promise<string | undefined> {
  const [addrs, own] = [new TestMap(loaded, catalogue.np_addrs), parseAddr(family.local)]
  const [server, client] = await Promise.all([bound(family), bound(family)])
  const sent = (): Promise<string> =>
    new Promise((resolve) => {
      client.send('hi', PORT, family.vip, (error) => {
        resolve(error === null ? 'sent' : (errorCode(error) ?? error.message))
      })
    })
  try {
    await publish(loaded, family, { proto: UDP, ports: [server.address().port] })
    addrs.set(own, addrInfo(ADDR_LOCAL_POD, {}))
    const before = await sent()
    addrs.set(own, addrInfo(ADDR_LOCAL_POD, { egress: '00000000000000aa' }))
    const outcomes = [before, await sent()].join(', ')
    return outcomes === 'sent, ENETUNREACH' ? undefined : `${outcomes} instead of sent, ENETUNREACH`
  } finally {
    addrs.delete(own)
    client.close()
    server.close()
  }
}

/** It means loopback, where no node ports are served yet. */
async function noAddress(loaded: Loaded, family: Family): Promise<string | undefined> {
  const server = createServer((socket) => socket.end()).listen(0, family.local)
  await once(server, 'listening')
  const host = family.bits === 4 ? '0.0.0.0' : '::'
  await publish(loaded, family, { proto: TCP, ports: [portOf(server.address())], at: { host, port: NODE_PORT, frontend: host } })
  const socket = connect({ host, port: NODE_PORT })
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(WAIT_MS) })
    return 'connected'
  } catch (error) {
    return errorCode(error) === 'ECONNREFUSED' ? undefined : String(error)
  } finally {
    socket.destroy()
    server.close()
  }
}

async function bound(family: Family): Promise<UdpSocket> {
  const socket = createSocket(family.type)
  socket.bind(0, family.local)
  await once(socket, 'listening')
  return socket
}

function portOf(address: string | AddressInfo | null): number {
  if (address === null || typeof address === 'string') throw new Error('a server without a port')
  return address.port
}
