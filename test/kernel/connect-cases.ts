// SPDX-License-Identifier: Apache-2.0
/** The connect-time programs at work: attached to a cgroup, with sockets of this process that mean a service. Layer: test. */
import type { Socket as UdpSocket } from 'node:dgram'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer } from 'node:net'
import { catalogue } from '#agent/maps/catalogue.ts'
import { ANY_V6, parseAddr } from '#lib/base/ip.ts'
import type { CgroupHook } from '#native'
import { BpfLink, cgroupAttach, cgroupDetach } from '#native'
import type { Loaded } from '../support/objects.ts'
import { TestMap, loadObject } from '../support/objects.ts'
import type { KernelFacts } from './kernel-facts.ts'
import { testCfg } from './packet-runner.ts'

const HOOKS = ['connect4', 'connect6', 'sendmsg4', 'sendmsg6', 'recvmsg4', 'recvmsg6', 'getpeername4', 'getpeername6'] as const
const FAMILIES = [
  { bits: 4, local: '127.0.0.1', vip: '10.96.0.10', type: 'udp4' },
  { bits: 6, local: '::1', vip: 'fd00:96::10', type: 'udp6' },
] as const
const PORT = 80
const TCP = 6
const UDP = 17
const WAIT_MS = 20_000

type Family = (typeof FAMILIES)[number]
type Check = (name: string, wrong: string | undefined) => void

/** `cgroup`: a cgroup2 directory with this process in or below it. Leaves nothing attached. */
export async function connectCases(cgroup: string, facts: KernelFacts, check: Check): Promise<void> {
  const loaded = await loadObject('connect', {
    cfg: testCfg(facts.features),
    stubHelpers: facts.missingHelpers,
    without: [...facts.missingHooks],
  })
  const detach = attachAll(loaded, cgroup, facts)
  try {
    for (const family of FAMILIES) {
      check(`connect${family.bits}: a TCP connection to a service`, await tcp(loaded, family, facts))
      check(`sendmsg${family.bits}: a datagram to a service and its answer`, await udp(loaded, family, facts))
    }
  } finally {
    detach()
    loaded.object.close()
  }
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

function publish(loaded: Loaded, family: Family, to: { readonly proto: number; readonly port: number }): void {
  const service = `00000000000000${family.bits}${to.proto.toString(16)}`.slice(-16)
  const backend = { addr: parseAddr(family.local), node: ANY_V6, port: to.port, flags: 0 }
  new TestMap(loaded, catalogue.np_backends).set({ service, slot: 0 }, backend)
  new TestMap(loaded, catalogue.np_frontends).set(
    { addr: parseAddr(family.vip), port: PORT, proto: to.proto },
    { service, count: 1, flags: 0 },
  )
}

async function tcp(loaded: Loaded, family: Family, facts: KernelFacts): Promise<string | undefined> {
  const server = createServer((socket) => socket.end('hello')).listen(0, family.local)
  await once(server, 'listening')
  publish(loaded, family, { proto: TCP, port: portOf(server.address()) })
  const socket = connect({ host: family.vip, port: PORT })
  const signal = AbortSignal.timeout(WAIT_MS)
  try {
    await once(socket, 'connect', { signal })
    const peer = socket.remoteAddress
    const came: unknown[] = await once(socket, 'data', { signal })
    const wanted = facts.missingHooks.has(`getpeername${family.bits}`) ? family.local : family.vip
    if (peer !== wanted) return `the peer's name is ${peer ?? 'unknown'} instead of ${wanted}`
    return String(came[0]) === 'hello' ? undefined : `came back: ${String(came[0])}`
  } catch (error) {
    return String(error)
  } finally {
    socket.destroy()
    server.close()
  }
}

async function udp(loaded: Loaded, family: Family, facts: KernelFacts): Promise<string | undefined> {
  const [server, client] = await Promise.all([bound(family), bound(family)])
  server.on('message', (_message, from) => server.send('hello', from.port, from.address))
  publish(loaded, family, { proto: UDP, port: server.address().port })
  try {
    client.send('hi', PORT, family.vip)
    const came: unknown[] = await once(client, 'message', { signal: AbortSignal.timeout(WAIT_MS) })
    const wanted = facts.missingHooks.has(`recvmsg${family.bits}`) ? family.local : family.vip
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
