// SPDX-License-Identifier: Apache-2.0
/** Network namespaces that a descriptor keeps, and sockets in them. Layer: test. */
import { execFileSync, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { closeSync, readlinkSync } from 'node:fs'
import { createServer, Socket, type AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { ifindexOf, makeNetns, socketInNetns } from '#native'
import { until } from '../../testkit/base/until.ts'
import { codeOf, isRoot } from './support.ts'

const DEVICE = 'nstest0'
const DISCARD = 9

function pathOf(descriptor: number): string {
  return `/proc/${process.pid}/fd/${descriptor}`
}

/** What becomes of a connection from there. */
function outcome(netns: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = new Socket({ fd: socketInNetns(netns, 'IPv4', 'TCP'), readable: false })
    const end = (text: string) => (): void => {
      socket.destroy()
      resolve(text)
    }
    socket.once('connect', end('connected')).once('error', end('refused'))
    socket.connect({ host: '127.0.0.1', port })
  })
}

describe.skipIf(!isRoot)('network namespaces', () => {
  test('a new one is another than this process is in, and goes with its descriptor, as do the devices in it', async () => {
    const before = readlinkSync('/proc/self/ns/net')
    const descriptor = makeNetns()
    expect(readlinkSync(pathOf(descriptor))).not.toBe(before)
    expect(readlinkSync('/proc/self/ns/net')).toBe(before)
    execFileSync('ip', ['link', 'add', DEVICE, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', pathOf(descriptor)])
    expect(ifindexOf(DEVICE)).toBeGreaterThan(0)
    closeSync(descriptor)
    await until('its devices gone', () => ifindexOf(DEVICE) === 0)
  })

  test('a socket is of the namespace in which it was made', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const descriptor = makeNetns()
    execFileSync('nsenter', [`--net=${pathOf(descriptor)}`, 'ip', 'link', 'set', 'lo', 'up'])
    expect(await outcome('/proc/self/ns/net', port)).toBe('connected')
    expect(await outcome(pathOf(descriptor), port)).toBe('refused')
    closeSync(descriptor)
    server.close()
  })

  test('what is no namespace, family or protocol is refused', () => {
    const socket = (...args: readonly string[]) => codeOf(() => Reflect.apply(socketInNetns, undefined, [...args]))
    expect(socket('/proc/self/ns/none', 'IPv4', 'TCP')).toBe('ENOENT')
    expect(socket('/proc/self/exe', 'IPv4', 'TCP')).toBe('EINVAL')
    expect(socket('/proc/self/ns/net', 'IPX', 'TCP')).toBe('EINVAL')
    expect(socket('/proc/self/ns/net', 'IPv4', 'SCTP')).toBe('EINVAL')
  })

  test.each(['IPv4', 'IPv6'] as const)('packets of an %s socket have the hop limit that is asked for', async (family) => {
    const [address, type] = family === 'IPv4' ? (['127.0.0.1', 'udp4'] as const) : (['::1', 'udp6'] as const)
    const capture = spawn('tcpdump', ['-i', 'lo', '-nvlc1', `udp and dst port ${DISCARD} and host ${address}`])
    capture.stdout.setEncoding('utf8')
    let [seen, said] = ['', '']
    capture.stdout.on('data', (text: string) => (seen += text))
    capture.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
    await until('a capture', () => said.includes('listening on'))
    const socket = createSocket(type)
    socket.bind({ fd: socketInNetns('/proc/self/ns/net', family, 'UDP', 7) })
    socket.send(Buffer.alloc(0), DISCARD, address)
    await until('its packet', () => seen.includes(`.${DISCARD}: `))
    socket.close()
    expect(seen).toMatch(/ttl 7,|hlim 7,/)
    expect(codeOf(() => socketInNetns('/proc/self/ns/net', family, 'UDP', 256))).toBe('EINVAL')
  })
})
