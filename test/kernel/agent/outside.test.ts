// SPDX-License-Identifier: Apache-2.0
/** What a whole agent tells others, and asks of the kernel besides programs: ports, metrics, settings. Layer: test. */
import { once } from 'node:events'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { node, service, slice } from './manifests.ts'
import { makeNode } from './node.ts'
import { programCommand } from '../../../testkit/base/program.ts'

let machine: ScratchNode

beforeEach(async () => {
  machine = await makeNode()
})

afterEach(async () => {
  await machine[Symbol.asyncDispose]()
})

function local(port: number): unknown {
  const spec = { ...service.spec, type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: port }
  return { ...service, spec }
}

/** "200 2 {…}": status, weight and body; "none" when no process listens. */
function ask(place: string): string {
  const script = `fetch("http://${place}").then(
    (answer) => answer.text().then((text) => console.log(answer.status, answer.headers.get("x-load-balancing-endpoint-weight"), text.trim())),
    () => console.log("none"))`
  return machine.sh(`${process.execPath} -e '${script}'`).trim()
}

const SOON = { interval: 200 }

test('a service with local endpoints only is asked on its own port, which comes, moves and goes with it', { timeout: 60_000 }, async () => {
  await machine.agent().event('dataplane.ready')
  machine.put('web.json', [local(30123), slice('10.1.1.5')])
  const body = (count: number): string =>
    JSON.stringify({ service: { namespace: 'default', name: 'web' }, localEndpoints: count, serviceProxyHealthy: true })
  await expect.poll(() => ask('192.0.2.1:30123/any'), SOON).toBe(`200 1 ${body(1)}`)
  expect(ask('127.0.0.1:30123/')).toBe(`200 1 ${body(1)}`)
  machine.put('web.json', [local(30123), slice()])
  await expect.poll(() => ask('192.0.2.1:30123/'), SOON).toBe(`503 0 ${body(0)}`)
  machine.put('web.json', [local(30124), slice('10.1.1.5')])
  await expect.poll(() => ask('192.0.2.1:30124/'), SOON).toMatch(/^200 1 /)
  expect(ask('192.0.2.1:30123/')).toBe('none')
  machine.put('web.json', [service, slice('10.1.1.5')])
  await expect.poll(() => ask('192.0.2.1:30124/'), SOON).toBe('none')
})

test('the node says that it is well, and that it is leaving', { timeout: 60_000 }, async () => {
  await machine.agent().event('dataplane.ready')
  await expect.poll(() => ask('192.0.2.1:10256/healthz'), SOON).toMatch(/^200 .*"nodeEligible":true/)
  const leaving = { spec: { podCIDRs: ['10.1.1.0/24'], taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] } }
  machine.put('nodes.json', [Object.assign({}, node('n1', '192.0.2.1', '10.1.1.0/24'), leaving)])
  await expect.poll(() => ask('192.0.2.1:10256/healthz'), SOON).toMatch(/^503 .*"nodeEligible":false/)
  expect(ask('192.0.2.1:10256/livez')).toMatch(/^200 /)
})

test('a port that another process has is a condition, and is taken once it is free', { timeout: 60_000 }, async () => {
  const agent = machine.agent('--health-port', '9099')
  await agent.event('dataplane.ready')
  machine.sh(`${process.execPath} -e 'require("net").createServer().listen(30125)' >/dev/null 2>&1 & echo $! > ${machine.folder}/holder`)
  await expect.poll(() => machine.sh('ss -Hltn sport = :30125 | wc -l').trim(), SOON).toBe('1')
  machine.put('web.json', [local(30125), slice('10.1.1.5')])
  const condition = /"name":"ports.health-checks","ok":false,"reason":"health-check.default\/web: [^"]*EADDRINUSE/
  await expect.poll(() => ask('127.0.0.1:9099/readiness'), SOON).toMatch(condition)
  expect(ask('127.0.0.1:9099/readiness')).toMatch(/^200 /)
  machine.sh(`kill $(cat ${machine.folder}/holder)`)
  await expect.poll(() => ask('192.0.2.1:30125/'), SOON).toMatch(/^200 1 /)
})

test('how long a change of endpoints took is measured, from what triggered it', { timeout: 60_000 }, async () => {
  const agent = machine.agent('--metrics-port', '9091')
  await agent.event('dataplane.ready')
  await agent.event('metrics.listening')
  const count = (): string => /^netplane_service_sync_seconds_count (\d+)$/m.exec(metrics())?.[1] ?? ''
  // the first request makes the metrics
  expect(count()).toBe('0')
  const changed = slice('10.1.1.5', '10.1.1.6')
  const metadata = {
    name: 'web-1',
    namespace: 'default',
    labels: { 'kubernetes.io/service-name': 'web' },
    annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': new Date().toISOString() },
  }
  machine.put('web.json', [service, Object.assign({}, changed, { metadata })])
  await expect.poll(count, SOON).toBe('1')
  expect(metrics()).toMatch(/^netplane_service_sync_seconds_bucket\{le="10"\} 1$/m)
})

test('packets with a source of the node\u2019s own are let in, and that is taken back', { timeout: 60_000 }, async () => {
  const settings = (): string => machine.sh('cat /proc/sys/net/ipv4/conf/lo/accept_local /proc/sys/net/ipv4/conf/eth0/accept_local')
  const before = settings()
  const agent = machine.agent()
  await agent.event('dataplane.ready')
  expect(settings()).toBe('1\n1\n')
  await agent.kill()
  machine.cleanup()
  expect([before, settings()]).toEqual(['0\n0\n', '0\n0\n'])
})

function metrics(): string {
  return machine.sh(`${process.execPath} -e 'fetch("http://127.0.0.1:9091/metrics").then((a) => a.text().then((t) => console.log(t)))'`)
}

test('a process of another user that took the name of agents of before keeps no agent out, and neither do namespaces let two in', async () => {
  const taking = `require('node:net').createServer((peer) => peer.on('error', () => {}).end('netplane-agent of node n1, pid 1'))
    .listen({ path: '\\0netplane-agent' }, () => console.log('ready'))`
  const stranger = machine.spawn(['setpriv', '--reuid', '65534', '--clear-groups', process.execPath, '-e', taking])
  if (stranger.stdout !== null) await once(stranger.stdout, 'data')
  const agent = machine.agent()
  expect(await agent.event('agent.old-lock-held')).toMatchObject({ uid: 65_534 })
  await agent.event('dataplane.ready')
  // as a container of the same node has them
  const main = programCommand('agent').join(' ')
  const flags = `--node n1 --resources ${machine.resources} --state-dir ${machine.state} --health-port 0`
  const refusal = `netplane-agent of node n1, pid ${String(agent.pid)}`
  expect(machine.sh(`unshare --net --mount -- ${main} ${flags} || true`)).toContain(refusal)
  expect(machine.cleanup()).toMatchObject({ status: 1, output: expect.stringContaining(refusal) as string })
  await agent.kill()
  expect(machine.cleanup()).toMatchObject({ status: 0 })
  stranger.kill()
  await once(stranger, 'exit')
})

test('a socket that was connected to a tunnel port before a node had its address sends nothing there', { timeout: 60_000 }, async () => {
  machine.sh('ip neigh add 192.0.2.9 lladdr 02:00:00:00:00:09 dev eth0')
  const sending = `const socket = require('node:dgram').createSocket('udp4')
    socket.connect(4789, '192.0.2.9', () => { console.log('ready'); setInterval(() => socket.send('x', () => {}), 50) })`
  const agent = machine.agent('--metrics-port', '9091')
  await agent.event('dataplane.ready')
  await agent.event('metrics.listening')
  const sender = machine.spawn([process.execPath, '-e', sending])
  if (sender.stdout !== null) await once(sender.stdout, 'data')
  const left = (): number => Number(/TX:.*\n\s*\d+\s+(\d+)/.exec(machine.sh('ip -s link show eth0'))?.[1])
  const refused = (): number => Number(/^netplane_drops_total\{reason="tunnel_source"\} (\d+)$/m.exec(metrics())?.[1])
  const before = left()
  await expect.poll(left, SOON).toBeGreaterThan(before + 5)
  expect(refused()).toBe(0)
  machine.put('joined.json', [node('n9', '192.0.2.9', '10.1.9.0/24')])
  await expect.poll(refused, SOON).toBeGreaterThan(5)
  sender.kill()
  await once(sender, 'exit')
})
