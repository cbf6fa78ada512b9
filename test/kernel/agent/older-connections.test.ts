// SPDX-License-Identifier: Apache-2.0
/** Connections that were open before the first agent came: the kernel's own table tells who opened them.
 * Layer: test. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface, type Interface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { NetlinkSocket } from '#native'
import { NETLINK_NETFILTER } from '#agent/interfaces/netlink/connection.ts'
import { encodeMessage, NLM_F_ACK, NLM_F_REQUEST } from '#agent/interfaces/netlink/message.ts'
import { waitFor } from '../../../lab/wait.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'
import type { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { globalPolicy } from './manifests.ts'
import { makeNode, POD_A, rows } from './node.ts'

const [POD, PEER, NODE] = ['10.1.1.5', '192.0.2.9', '192.0.2.1']
/** a service of the proxy before us, whose backend is the peer */
const SERVICE = '10.96.0.20'
const [ASKED, SERVED] = [7000, 8000]
/** the kernel sends a lost segment again after 200 ms, then 400, 800 and 1600 */
const SILENCE_MS = 3000
const DELETE_CONNECTIONS = 0x102

/** Echoes what it hears as a server; as a client says each line that it is given. */
const TALK = `
  const net = require('node:net')
  const [as, host, port] = process.argv.slice(1)
  const server = (socket) => { socket.on('error', () => {}); socket.pipe(socket) }
  if (as === 'serve') net.createServer(server).listen(Number(port), host, () => console.log('ready'))
  else {
    const socket = net.connect(Number(port), host, () => console.log('ready'))
    socket.pipe(process.stdout)
    process.stdin.pipe(socket)
  }`

class Talker {
  readonly #child: ChildProcess
  readonly #lines: Interface
  readonly #heard: string[] = []

  constructor(child: ChildProcess) {
    if (child.stdout === null) throw new Error('no output')
    this.#child = child
    this.#lines = createInterface(child.stdout)
    this.#lines.on('line', (line) => this.#heard.push(line))
  }

  async ready(): Promise<this> {
    await once(this.#lines, 'line')
    return this
  }

  /** Says the text. True when it comes back within `patienceMs`. */
  async asks(text: string, patienceMs = HANG_MS): Promise<boolean> {
    this.#child.stdin?.write(`${text}\n`)
    const heard = (): true | undefined => (this.#heard.includes(text) ? true : undefined)
    return (await waitFor(heard, { timeoutMs: patienceMs })) ?? false
  }

  end(): void {
    this.#child.kill('SIGKILL')
  }
}

let machine: ScratchNode
let running: { end(): void }[]
let places: Readonly<Record<'pod' | 'peer', number>>

beforeEach(async () => {
  machine = await makeNode()
  running = []
  places = { pod: await place(), peer: await place() }
  const inside = (pid: number): string => `nsenter --target ${pid} --net --`
  const [pod, peer] = [POD_A.replace('npl', 'p'), 'wire0']
  machine.sh(`
    ip link set ${pod} netns ${places.pod}; ip link set ${peer} netns ${places.peer}
    ${inside(places.pod)} sh -ec 'ip link set lo up; ip link set ${pod} up; ip addr add ${POD}/32 dev ${pod}
      ip route add 169.254.1.1 dev ${pod}; ip route add default via 169.254.1.1 dev ${pod}'
    ${inside(places.peer)} sh -ec 'ip link set wire0 up; ip addr add ${PEER}/24 dev wire0; ip route add ${POD} via ${NODE}'
    ip route add ${POD} dev ${POD_A}
    ip addr add 169.254.1.1/32 dev ${POD_A}
    echo 1 > /proc/sys/net/ipv4/ip_forward
    nft 'add table ip kube-proxy; add chain ip kube-proxy c { type nat hook prerouting priority -100; }
      add rule ip kube-proxy c ip daddr ${SERVICE} tcp dport 80 dnat to ${PEER}:${ASKED}'`)
  machine.put('policy.json', [globalPolicy('closed', { selector: 'all()', types: ['Ingress'] })])
  await talker('peer', serve(PEER, ASKED))
  await talker('pod', serve(POD, SERVED))
})

afterEach(async () => {
  for (const one of running) one.end()
  await machine[Symbol.asyncDispose]()
})

/** A network namespace of its own, by the id of a process in it. */
async function place(): Promise<number> {
  const child = machine.spawn(['unshare', '--net', '--', 'sh', '-c', 'echo $$; exec sleep infinity'])
  running.push({ end: () => child.kill('SIGKILL') })
  if (child.stdout === null) throw new Error('no output')
  const line: unknown = (await once(createInterface(child.stdout), 'line'))[0]
  return Number(line)
}

const serve = (host: string, port: number): readonly string[] => ['serve', host, String(port)]
const ask = (host: string, port: number): readonly string[] => ['ask', host, String(port)]

async function talker(where: keyof typeof places, order: readonly string[]): Promise<Talker> {
  const node = [process.execPath, '-e', TALK, '--', ...order]
  const command = ['--target', String(places[where]), '--net', '--', ...node]
  const one = new Talker(spawn('nsenter', command, { stdio: ['pipe', 'pipe', 'inherit'] }))
  running.push(one)
  return one.ready()
}

/** As long as the kernel has no entry of a connection, it enters the next segment of either end as one that begins. */
function forgetConnections(): void {
  const socket = NetlinkSocket.open({ protocol: NETLINK_NETFILTER, netns: machine.path('../ns/net') })
  socket.send(encodeMessage({ type: DELETE_CONNECTIONS, flags: NLM_F_REQUEST | NLM_F_ACK, seq: 1, payload: Buffer.alloc(4) }))
  expect(socket.receiveWait(1000)?.readInt32LE(16)).toBe(0)
  socket.close()
}

async function agentServes(): Promise<void> {
  const agent = machine.agent()
  await agent.event('dataplane.ready')
  await agent.event('older-connections.found', 2)
}

describe('a closed pod', () => {
  test('keeps the connections that it has opened, also by a service, and loses those that it was asked for', async () => {
    const [direct, service] = [await talker('pod', ask(PEER, ASKED)), await talker('pod', ask(SERVICE, 80))]
    const asked = await talker('peer', ask(POD, SERVED))
    expect(await Promise.all([direct, service, asked].map((one) => one.asks('before')))).toEqual([true, true, true])
    await agentServes()
    expect(await rows(machine, 'np_older')).toBe(4)
    expect(await Promise.all([direct.asks('after'), service.asks('after'), asked.asks('after', SILENCE_MS)])).toEqual([true, true, false])
  })

  test('loses a connection that the kernel has met on its way, for either end may have opened it', async () => {
    const direct = await talker('pod', ask(PEER, ASKED))
    forgetConnections()
    expect(await direct.asks('before')).toBe(true)
    await agentServes()
    expect(await rows(machine, 'np_older')).toBe(0)
    expect(await direct.asks('after', SILENCE_MS)).toBe(false)
  })
})
