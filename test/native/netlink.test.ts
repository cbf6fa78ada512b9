// SPDX-License-Identifier: Apache-2.0
/** NetlinkSocket: bytes in and out, events, overruns. Layer: test. */
import { execFileSync, spawn } from 'node:child_process'
import { readFileSync, readlinkSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { NetlinkSocket, ifindexOf, writeInNetns } from '#native'
import { until } from '../../testkit/base/until.ts'
import { codeOf, errorCode, isRoot } from './support.ts'

const ROUTE = 0
const RTM_NEWLINK = 16
const RTM_GETLINK = 18
const DONE = 3
const ERROR = 2
const LINK_GROUP = 1
const REQUEST = 1
const DUMP = 0x300

/** A request for links, with struct ifinfomsg behind the header. */
function getLink(flags: number, ifindex = 0): Buffer {
  const bytes = Buffer.alloc(32)
  bytes.writeUInt32LE(32, 0)
  bytes.writeUInt16LE(RTM_GETLINK, 4)
  bytes.writeUInt16LE(flags, 6)
  bytes.writeUInt32LE(7, 8)
  bytes.writeInt32LE(ifindex, 20)
  return bytes
}

function types(datagram: Buffer): number[] {
  const found: number[] = []
  for (let at = 0; at < datagram.length; at += Math.ceil(datagram.readUInt32LE(at) / 4) * 4) found.push(datagram.readUInt16LE(at + 4))
  return found
}

function setMtu(rounds: number): void {
  const lines = Array.from({ length: rounds }, (_, index) => `link set lo mtu ${1500 + (index % 2)}`)
  execFileSync('ip', ['-batch', '-'], { input: lines.join('\n') })
}

/** Changes links, and waits until another socket hears of it: every socket that hears of it at all has by then. */
async function changeLinks(): Promise<void> {
  const socket = NetlinkSocket.open({ protocol: ROUTE, groups: [LINK_GROUP] })
  let told = false
  socket.onReadable(() => {
    told = true
    socket.onReadable(undefined)
  })
  setMtu(2)
  await until('another socket told', () => told)
  socket.close()
}

describe.skipIf(!isRoot)('NetlinkSocket', () => {
  test('a dump of links ends with DONE', () => {
    const socket = NetlinkSocket.open({ protocol: ROUTE })
    expect(socket.port).toBeGreaterThan(0)
    expect(socket.receive()).toBeUndefined()
    socket.send(getLink(REQUEST | DUMP))
    const seen: number[] = []
    while (!seen.includes(DONE)) {
      const datagram = socket.receiveWait(1000)
      if (datagram === undefined) throw new Error('no answer')
      seen.push(...types(datagram))
    }
    expect(seen).toContain(RTM_NEWLINK)
    expect(socket.receiveWait(1)).toBeUndefined()
    socket.close()
  })

  test('errors come with the request they are for', () => {
    const socket = NetlinkSocket.open({ protocol: ROUTE })
    socket.send(getLink(REQUEST, 0x7ffffff0))
    const answer = socket.receiveWait(1000)
    expect(answer?.readUInt16LE(4)).toBe(ERROR)
    expect(answer?.readInt32LE(16)).toBe(-19)
    socket.close()
    expect(codeOf(() => socket.receive())).toBe('EBADF')
    expect(codeOf(() => socket.onReadable(undefined))).toBe('EBADF')
  })

  test('events of a group are announced until the listener is removed', async () => {
    const socket = NetlinkSocket.open({ protocol: ROUTE, groups: [LINK_GROUP] })
    const seen: number[] = []
    socket.onReadable(() => {
      for (let datagram = socket.receive(); datagram !== undefined; datagram = socket.receive()) seen.push(...types(datagram))
    })
    setMtu(2)
    await until('an event', () => seen.includes(RTM_NEWLINK))
    socket.onReadable(undefined)
    seen.length = 0
    await changeLinks()
    expect(seen).toEqual([])
    expect(socket.receive()).toBeDefined()
    socket.close()
  })

  // libuv stops a watcher on a socket error: the addon has to start it again
  test('after an overrun events go on', async () => {
    const socket = NetlinkSocket.open({ protocol: ROUTE, groups: [LINK_GROUP], receiveBufferBytes: 4096 })
    const errors: string[] = []
    let datagrams = 0
    const drain = (): void => {
      try {
        while (socket.receive() !== undefined) datagrams++
      } catch (error) {
        errors.push(errorCode(error))
      }
    }
    socket.onReadable(drain)
    setMtu(400)
    await until('the overrun', () => errors.length > 0)
    expect(errors).toContain('ENOBUFS')
    await until('the end of the old events', () => socket.receive() === undefined)
    datagrams = 0
    setMtu(2)
    await until('new events', () => datagrams > 0)
    socket.close()
  })

  test('a closed socket is announced no more, and options are checked', async () => {
    const socket = NetlinkSocket.open({ protocol: ROUTE, groups: [LINK_GROUP] })
    let calls = 0
    socket.onReadable(() => {
      calls++
      socket.close()
    })
    setMtu(20)
    await until('a call', () => calls > 0)
    await changeLinks()
    expect(calls).toBe(1)
    expect(codeOf(() => NetlinkSocket.open({ protocol: 1000 }))).toMatch(/EPROTONOSUPPORT|EINVAL/)
    expect(codeOf(() => NetlinkSocket.open({ protocol: ROUTE, groups: [100_000] }))).toBe('EINVAL')
    expect(ifindexOf('lo')).toBe(1)
  })

  test('is in the network namespace that it is asked to be in, and so is what is written there', () => {
    const holder = spawn('unshare', ['--net', 'sleep', '60'])
    const netns = `/proc/${String(holder.pid)}/ns/net`
    try {
      const forwarding = (): string =>
        execFileSync('nsenter', [`--net=${netns}`, 'cat', '/proc/sys/net/ipv4/ip_forward'], { encoding: 'utf8' }).trim()
      const own = readFileSync('/proc/sys/net/ipv4/ip_forward', 'utf8')
      // until it has its own
      while (readlinkSync(netns) === readlinkSync('/proc/self/ns/net')) execFileSync('sleep', ['0.01'])
      const socket = NetlinkSocket.open({ protocol: ROUTE, netns })
      socket.send(getLink(REQUEST, 1))
      // lo is down in a new one
      expect(socket.receiveWait(1000)?.readUInt32LE(24)).toBe(8)
      socket.close()
      for (const value of ['1', '0']) {
        writeInNetns(netns, '/proc/sys/net/ipv4/ip_forward', value)
        expect(forwarding()).toBe(value)
      }
      expect(readFileSync('/proc/sys/net/ipv4/ip_forward', 'utf8')).toBe(own)
    } finally {
      holder.kill('SIGKILL')
    }
    expect(codeOf(() => NetlinkSocket.open({ protocol: ROUTE, netns: '/nowhere' }))).toBe('ENOENT')
    expect(codeOf(() => NetlinkSocket.open({ protocol: ROUTE, netns: '/dev/null' }))).toBe('EINVAL')
  })
})
