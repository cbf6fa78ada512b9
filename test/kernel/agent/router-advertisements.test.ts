// SPDX-License-Identifier: Apache-2.0
/** A node that has learned its addresses and its default route of IPv6 from a router keeps them, whether it forwards
 * IPv6 or not. Layer: test. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { addrBytes, parseAddr } from '#lib/base/ip.ts'
import { toolCommand } from '../../../lab/paths.ts'
import type { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { icmp } from '../../../testkit/packets/packet.ts'
import { pod } from './manifests.ts'
import { makeNode, plug, POD_B } from './node.ts'

const ROUTER = 'fe80::66'

let machine: ScratchNode
let router: ChildProcess

beforeEach(async () => {
  machine = await makeNode()
  router = machine.spawn(['unshare', '--net', '--', 'sh', '-c', 'echo ready; exec sleep 600'])
  if (router.stdout !== null) await once(router.stdout, 'data')
  machine.sh(`
    ip link set wire0 netns ${router.pid}
    echo 1 > /proc/sys/net/ipv6/conf/eth0/accept_ra
    echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad
    nsenter --target ${router.pid} --net sh -ec 'ip link set lo up; ip link set wire0 up'`)
})

afterEach(async () => {
  router.kill('SIGKILL')
  await machine[Symbol.asyncDispose]()
})

/** The router is the default route for half an hour, and says this prefix of the link. */
function advertise(prefix: string): void {
  const option = Buffer.concat([Buffer.from([3, 4, 64, 0xc0]), Buffer.alloc(12), addrBytes(parseAddr(prefix))])
  option.writeUInt32BE(86_400, 4)
  option.writeUInt32BE(14_400, 8)
  const frame = icmp(ROUTER, 'ff02::1', {
    ...{ type: 134, word: (64 << 24) | 1800, body: Buffer.concat([Buffer.alloc(8), option]), ttl: 255 },
    macs: { src: '02:00:00:00:00:66', dst: '33:33:00:00:00:01' },
  })
  const command = [...toolCommand('send-frames'), 'wire0', Buffer.from(frame).toString('hex')]
  machine.sh(`nsenter --target ${router.pid} --net ${command.map((word) => `'${word}'`).join(' ')}`)
}

const learned = (): string => machine.sh('ip -6 route show default dev eth0; ip -6 -o addr show dev eth0 scope global')
const setting = (path: string): string => machine.sh(`cat /proc/sys/net/ipv6/conf/${path}`).trim()
const settings = (): string => ['all/forwarding', 'eth0/accept_ra'].map(setting).join(' ')

test('what a router gave the node stays, and what it gives later is taken', { timeout: 60_000 }, async () => {
  advertise('fd00:8::')
  const isLearned = (prefix: string): boolean => learned().includes(`via ${ROUTER}`) && learned().includes(prefix)
  await expect.poll(() => isLearned('fd00:8::')).toBe(true)
  const agent = machine.agent()
  await agent.event('dataplane.ready')
  // no pod has an address of IPv6
  expect([settings(), isLearned('fd00:8:')]).toEqual(['0 1', true])
  plug(machine, POD_B)
  machine.put('pods.json', [pod('a', '10.1.1.5'), pod('b', 'fd00:1::5')])
  await agent.until('forwarding', () => settings() === '1 2')
  expect(isLearned('fd00:8:')).toBe(true)
  advertise('fd00:9::')
  await expect.poll(() => isLearned('fd00:9:')).toBe(true)
  machine.put('pods.json', [pod('a', '10.1.1.5')])
  await agent.until('forwarding to end', () => setting('all/forwarding') === '0')
  machine.put('pods.json', [pod('a', '10.1.1.5'), pod('b', 'fd00:1::5')])
  await agent.until('forwarding', () => settings() === '1 2')
  await agent.stop()
  expect(machine.cleanup().output).toContain('restored sysctl net/ipv6/conf/all/forwarding')
  expect([settings(), isLearned('fd00:9:')]).toEqual(['0 1', true])
})
