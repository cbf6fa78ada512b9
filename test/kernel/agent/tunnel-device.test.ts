// SPDX-License-Identifier: Apache-2.0
/** The whole agent and the device that announces the tunnel's port: kept, adopted, left to others, and no door for
 * frames from the network while the agent is there or away. Layer: test. */
import { once } from 'node:events'
import type { ChildProcess } from 'node:child_process'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TUNNEL_DEVICE } from '#agent/dataplane/host/tunnel-device.ts'
import { at, numberAt } from '../../../lab/raw.ts'
import type { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'
import { intrusions } from '../dataplane/tunnel-device-cases.ts'
import { felix, node } from './manifests.ts'
import { makeNode } from './node.ts'

const NODE = { v4: '192.0.2.1', v6: 'fd00:2::1' }
const OUTSIDE = { v4: '192.0.2.66', v6: 'fd00:2::66' }
const INTRUSIONS = intrusions(NODE, OUTSIDE)
const SOON = { interval: 50 }

let machine: ScratchNode
let outside: ChildProcess

beforeEach(async () => {
  machine = await makeNode()
  outside = machine.spawn(['unshare', '--net', '--', 'sh', '-c', 'echo ready; exec sleep 600'])
  if (outside.stdout !== null) await once(outside.stdout, 'data')
  machine.sh(`
    ip link set wire0 netns ${outside.pid}
    ip addr add ${NODE.v6}/64 dev eth0 nodad
    nsenter --target ${outside.pid} --net sh -ec '
      ip link set lo up; ip link set wire0 up
      ip addr add ${OUTSIDE.v4}/24 dev wire0; ip addr add ${OUTSIDE.v6}/64 dev wire0 nodad'`)
})

afterEach(async () => {
  outside.kill('SIGKILL')
  await machine[Symbol.asyncDispose]()
})

/** "INDEX up 4789 drop_tunnel", of what is not so "-"; "none". */
function device(): string {
  const [links, filters = ''] = machine
    .sh(
      `links=$(ip -json -details link show ${TUNNEL_DEVICE} 2>/dev/null) && echo "$links" || echo '[]'; echo ---; tc filter show dev ${TUNNEL_DEVICE} ingress 2>&1 || true`,
    )
    .split('---')
  const [link] = listOf(links)
  const program = filters.includes('drop_tunnel') ? 'drop_tunnel' : '-'
  const flags = at(link, 'flags')
  const isUp = Array.isArray(flags) && flags.includes('UP')
  if (link === undefined) return 'none'
  return `${numberAt(link, 'ifindex') ?? '-'} ${isUp ? 'up' : '-'} ${numberAt(link, 'linkinfo.info_data.port') ?? '-'} ${program}`
}

function listOf(json = '[]'): readonly unknown[] {
  const list: unknown = JSON.parse(json)
  return Array.isArray(list) ? list : []
}

function isRight(port = 4789): boolean {
  return new RegExp(`^\\d+ up ${port} drop_tunnel$`).test(device())
}

/** What a socket of the node gets of all frames that outside puts into tunnels of its own, by both families. */
async function intruded(): Promise<string> {
  const listening = `for (const type of ['udp4', 'udp6']) require('dgram').createSocket({ type, ipv6Only: type === 'udp6' })
      .on('message', (text) => console.log(String(text))).bind(5555)
    setTimeout(() => console.log('listening'), 200)`
  const victim = machine.spawn([process.execPath, '-e', listening])
  let got = ''
  victim.stdout?.on('data', (text: Buffer) => (got += text.toString()))
  await expect.poll(() => got, SOON).toContain('listening')
  const payloads = JSON.stringify([...INTRUSIONS.values()].map((bytes) => Buffer.from(bytes).toString('hex')))
  const sending = `for (const [type, to] of [["udp4", "${NODE.v4}"], ["udp6", "${NODE.v6}"]]) {
      const socket = require("dgram").createSocket(type)
      for (const hex of ${payloads}) socket.send(Buffer.from(hex, "hex"), 4789, to)
    }
    setTimeout(process.exit, 300)`
  machine.sh(`nsenter --target ${outside.pid} --net ${process.execPath} -e '${sending}'`)
  victim.kill()
  await once(victim, 'exit')
  return got.replace('listening\n', '')
}

test('the device is there while there is another node, and is cleaned up', { timeout: 60_000 }, async () => {
  const agent = machine.agent()
  await agent.event('dataplane.ready')
  await agent.until('the device', isRight)
  expect(machine.sh(`ip -o addr show dev ${TUNNEL_DEVICE}`)).toBe('')
  expect(machine.sh('ip route show table all; ip -6 route show table all')).not.toContain(TUNNEL_DEVICE)
  expect(machine.sh('ls /proc/sys/net/ipv6/conf')).not.toContain(TUNNEL_DEVICE)
  expect(agent.events('device.selected')).toEqual([expect.objectContaining({ device: 'eth0' })])
  machine.put('nodes.json', [node('n1', NODE.v4, '10.1.1.0/24')])
  await agent.until('it to go', () => device() === 'none')
  machine.put('nodes.json', [node('n1', NODE.v4, '10.1.1.0/24'), node('n2', '192.0.2.2', '10.1.2.0/24')])
  await agent.until('it to come back', isRight)
  expect(agent.events('drift.found')).toEqual([])
  await agent.kill()
  expect(machine.cleanup().output).toContain(`removed device ${TUNNEL_DEVICE}`)
  expect(device()).toBe('none')
})

test('a pattern for host devices does not mean it', { timeout: 60_000 }, async () => {
  machine.put('felix.json', [felix(machine.cgroup, { bpfDataIfacePattern: '.*' })])
  const agent = machine.agent()
  await agent.event('dataplane.ready')
  await agent.until('the device', isRight)
  await agent.event('device.selected')
  expect(agent.events('device.selected').map((line) => line['device'])).not.toContain(TUNNEL_DEVICE)
})

describe('what strangers change is put back within about a second', () => {
  test.each([
    ['the device', `ip link del ${TUNNEL_DEVICE}`],
    ['that it is up', `ip link set ${TUNNEL_DEVICE} down`],
    // the kernel refuses it while the agent asks for its filters
    ['its program', `for try in 1 2 3 4 5; do tc qdisc del dev ${TUNNEL_DEVICE} clsact && exit; sleep 0.05; done; exit 1`],
  ])('%s', { timeout: 60_000 }, async (_, damage) => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    await agent.until('the device', isRight)
    await withinBestOfThree(2500, async () => {
      machine.sh(damage)
      const since = performance.now()
      await agent.until('it to be as it was', isRight)
      return performance.now() - since
    })
    expect(await agent.event('drift.found')).toMatchObject({ part: 'tunnel-device' })
  })
})

test('the next agent has it as it is; with another vxlanPort it is made again', { timeout: 90_000 }, async () => {
  const first = machine.agent()
  await first.event('dataplane.ready')
  await first.until('the device', isRight)
  const before = device()
  await first.kill()
  const second = machine.agent()
  await second.event('dataplane.ready')
  await second.until('the device', isRight)
  expect(device()).toBe(before)
  expect([second.events('tunnel.announced'), second.events('drift.found')]).toEqual([[], []])
  machine.put('felix.json', [felix(machine.cgroup, { vxlanPort: 4790 })])
  await second.until('another port', () => isRight(4790))
})

test('another VXLAN device of the port serves, also one that comes later', { timeout: 60_000 }, async () => {
  machine.sh('ip link add vx0 type vxlan id 7 dstport 4789 nolearning; ip link set vx0 up')
  const agent = machine.agent()
  await agent.event('dataplane.ready')
  expect(await agent.event('tunnel.unannounced')).toMatchObject({ port: 4789, reason: 'vx0 has it' })
  expect(device()).toBe('none')
  machine.put('felix.json', [felix(machine.cgroup, { vxlanPort: 4790, routeRefreshInterval: '1s' })])
  await agent.until('a port of our own', () => isRight(4790))
  machine.sh('ip link add vx1 type vxlan id 8 dstport 4790 nolearning')
  await agent.until('ours to give way', () => device() === 'none')
  machine.sh('ip link set vx1 up')
})

test('nothing that comes in a tunnel reaches the node by it, whether the agent runs or not [once]', { timeout: 90_000 }, async () => {
  const agent = machine.agent('--metrics-port', '9091')
  await agent.event('dataplane.ready')
  await agent.until('the device', isRight)
  machine.sh(`for name in all eth0 ${TUNNEL_DEVICE}; do echo 0 > /proc/sys/net/ipv4/conf/$name/rp_filter; done`)
  expect(await intruded()).toBe('')
  const metrics = machine.sh(`${process.execPath} -e 'fetch("http://127.0.0.1:9091/metrics").then((a) => a.text().then(console.log))'`)
  const drops = (reason: string): number =>
    Number(new RegExp(`^netplane_drops_total\\{reason="${reason}"\\} (\\d+)$`, 'm').exec(metrics)?.[1])
  // of our own VNI from_host drops those to the node's address, and names the sender
  expect([drops('tunnel_source') + drops('tunnel_header'), drops('tunnel_foreign')]).toEqual([6, 2 * INTRUSIONS.size - 6])
  await agent.kill()
  expect(await intruded()).toBe('')
  machine.sh('rm -r /sys/fs/bpf/netplane')
  expect(await intruded(), 'its program needs no pin').toBe('')
  machine.sh(`tc qdisc del dev ${TUNNEL_DEVICE} clsact`)
  expect(await intruded(), 'without it they come in').toContain('VNI 0, v4 to all')
})
