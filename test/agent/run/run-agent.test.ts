// SPDX-License-Identifier: Apache-2.0
/** Whole agents, from a directory of manifests to the maps of a kernel in memory. Layer: test. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { formatAddr, type Port } from '#lib/base/ip.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { runAgent } from '#agent/run/run-agent.ts'
import { felixConfiguration, node, pod, service, slice, type Manifest } from '../../support/build.ts'
import { FakeKernel } from '../../support/fakes/fake-kernel.ts'
import { ListLog } from '../../support/fakes/list-log.ts'
import { freePort } from '../../../testkit/base/free-port.ts'

const ETH0 = { index: 2, name: 'eth0', addresses: [{ addr: '192.0.2.1', bits: 24 }] }
const BOTH = { addresses: ['192.0.2.1', '2001:db8::1'] }
const SELF = node('n1', { addresses: ['192.0.2.1'], podCIDRs: ['10.1.1.0/24'] })
const WEB = service('web', { clusterIPs: ['10.96.0.7'] })
const CONFIG = { cgroupV2Path: '/a/cgroup', bpfKubeProxyHealthzPort: 0, bpfProxyIptablesCleanupEnabled: false }
/** They listen at once, and watch a directory. */
const SOON = { interval: 5 }

let folder: string
let kernel: FakeKernel
let log: ListLog
let healthPort: Port
let metricsPort: Port
let agents: Agent[]

interface Agent {
  /** resolves when it has ended */
  stop(): Promise<void>
}

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-agent-'))
  mkdirSync(join(folder, 'manifests'))
  kernel = new FakeKernel(folder, { index: 1, name: 'lo' }, ETH0)
  log = new ListLog()
  ;[healthPort, metricsPort] = [await freePort(), await freePort()]
  agents = []
  put('config', felixConfiguration('default', CONFIG))
  put('n1', SELF)
})

afterEach(async () => {
  for (const agent of agents) await agent.stop()
  rmSync(folder, { recursive: true })
})

/** Into a file of its own. */
function put(file: string, manifest: Manifest | string): void {
  writeFileSync(join(folder, 'manifests', `${file}.yaml`), typeof manifest === 'string' ? manifest : JSON.stringify(manifest))
}

function start(): Agent {
  const stop = new AbortController()
  const options = {
    ...{ node: 'n1', origin: { kind: 'directory', directory: join(folder, 'manifests') } as const, pinDir: join(folder, 'pins') },
    ...{ stateDir: join(folder, 'state'), keepDir: join(folder, 'keep'), config: undefined, objects: undefined },
    ...{ healthPort, metricsPort },
  }
  const ended = runAgent({ options, log, signal: stop.signal, kernel })
  const agent = {
    stop: async () => {
      stop.abort()
      await ended
    },
  }
  agents.push(agent)
  return agent
}

async function until(event: string, times = 1): Promise<void> {
  await expect.poll(() => log.of(event).length, SOON).toBeGreaterThanOrEqual(times)
}

async function page(path: string, port = healthPort): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`)
  return `${answer.status} ${await answer.text()}`
}

/** Lines of samples whose name and labels begin so. */
async function metrics(...names: readonly string[]): Promise<readonly string[]> {
  await until('metrics.listening')
  const lines = (await page('/metrics', metricsPort)).split('\n')
  return lines.filter((line) => names.some((name) => line.startsWith(name)))
}

/** Conditions that do not hold, with why; but for those of which nothing is known yet. */
async function unmet(): Promise<Readonly<Record<string, string>>> {
  const report: unknown = JSON.parse((await page('/readiness')).slice(4))
  const { conditions } = report as {
    readonly conditions: readonly { readonly name: string; readonly ok: boolean; readonly reason: string }[]
  }
  return Object.fromEntries(conditions.flatMap(({ name, ok, reason }) => (ok || reason === 'starting' ? [] : [[name, reason]])))
}

const frontends = (): string[] => kernel.programs.rows(catalogue.np_frontends).map(([{ addr, port }]) => `${formatAddr(addr)}:${port}`)
const backends = (): string[] =>
  kernel.programs
    .rows(catalogue.np_backends)
    .map(([, { addr, port }]) => `${formatAddr(addr)}:${port}`)
    .sort()

test('a node gets what the manifests want, in the maps and at the hooks, and says so', async () => {
  put('web', WEB)
  put('web-1', slice('web-1', { endpoints: ['10.1.2.3'] }))
  start()
  await until('dataplane.ready')
  expect([frontends(), backends()]).toEqual([['10.96.0.7:80'], ['10.1.2.3:8080']])
  expect(kernel.hooked.interfaces.list().sort()).toEqual(['eth0/egress', 'eth0/ingress'])
  expect(kernel.hooked.cgroup.list()).toContain('cgroup/connect4')
  expect(kernel.sysctl('net/ipv4/ip_forward')).toBe('1')
  expect(log.events.filter((event) => /^(agent|kernel|programs|dataplane)\./.test(event))).toEqual([
    ...['agent.started', 'kernel.features', 'programs.ready', 'dataplane.adopted', 'dataplane.ready'],
  ])
  // the socket listens at a moment of its own
  expect(log.events).toContain('health.listening')
  expect(await unmet()).toEqual({})
  expect(await page('/config')).toContain('"from": "default"')
  expect(await metrics('netplane_map_rows{map="np_frontends"', 'netplane_policy_rules ')).toEqual([
    'netplane_map_rows{map="np_frontends"} 1',
    'netplane_policy_rules 0',
  ])
})

test('a changed slice reaches the maps, and nothing else is written', async () => {
  put('web', WEB)
  put('web-1', slice('web-1', { endpoints: ['10.1.2.3'] }))
  start()
  await until('dataplane.ready')
  const calls = kernel.programs.maps.get('np_frontends')?.calls.filter((call) => call !== 'dump').length
  put('web-1', slice('web-1', { endpoints: ['10.1.2.3', '10.1.2.4'] }))
  await expect.poll(backends, SOON).toEqual(['10.1.2.3:8080', '10.1.2.4:8080'])
  expect(calls).toBe(1)
  expect(kernel.programs.attempts).toHaveLength(1)
})

test('a manifest that cannot be read is refused by name, and its last good version stays in force', async () => {
  put('web', WEB)
  put('web-1', slice('web-1', { endpoints: ['10.1.2.3'] }))
  start()
  await until('dataplane.ready')
  put('web-1', { ...slice('web-1', { endpoints: ['10.1.2.3'] }), endpoints: 'none' })
  await until('object.rejected')
  expect(log.of('object.rejected')).toMatchObject([{ source: 'directory', ref: 'EndpointSlice/default/web-1', path: 'endpoints' }])
  expect(backends()).toEqual(['10.1.2.3:8080'])
})

test('services that want the same address are named, until one of them goes', async () => {
  put('web', WEB)
  put('other', service('zzz', { clusterIPs: ['10.96.0.7'] }))
  start()
  await until('dataplane.ready')
  expect(log.of('object.rejected')).toMatchObject([{ source: 'compiler', ref: 'Service/default/zzz' }])
  put('other', service('zzz', { clusterIPs: ['10.96.0.8'] }))
  await until('object.accepted')
  await expect.poll(() => frontends().sort(), SOON).toEqual(['10.96.0.7:80', '10.96.0.8:80'])
})

test('nothing is loaded before the sources have this node, whose absence is logged once', async () => {
  put('n1', node('other'))
  start()
  await until('node.lost')
  put('web', WEB)
  await until('configuration.applied')
  expect(await unmet()).toMatchObject({ 'node.known': 'there is no Node n1 in the sources' })
  expect(kernel.programs.attempts).toEqual([])
  put('n1', SELF)
  await until('dataplane.ready')
  expect([log.of('node.lost').length, log.of('node.found').length, await unmet()]).toEqual([1, 1, {}])
  put('n1', node('other'))
  await until('node.lost', 2)
  expect([frontends(), (await unmet())['node.known']]).toEqual([
    ['10.96.0.7:80'],
    'there is no Node n1 in the sources: its last good state stays in force',
  ])
})

test.each([
  { condition: 'node.address', before: {}, after: { external: BOTH.addresses }, ready: '503' },
  { condition: 'node.address-family', before: { addresses: ['2001:db8::1'] }, after: BOTH, ready: '200' },
])(
  'a node whose $condition is missing answers $ready to probes and says why, until it has one',
  async ({ condition, before, after, ready }) => {
    const podCIDRs = ['10.1.1.0/24', 'fd00:1::/64']
    put('n1', node('n1', { podCIDRs, ...before }))
    start()
    await until(`${condition}-lost`)
    await until('dataplane.ready')
    expect((await page('/readiness')).slice(0, 3)).toBe(ready)
    expect(await unmet()).toEqual({ [condition]: log.of(`${condition}-lost`)[0]?.['reason'] })
    put('n1', node('n1', { podCIDRs, ...after }))
    await until(`${condition}-found`)
    await until('programs.retired')
    expect(kernel.programs.attempts.map(({ knobs }) => formatAddr(knobs.nodeV4))).toEqual(['0.0.0.0', '192.0.2.1'])
    expect([await unmet(), (await page('/readiness')).slice(0, 3)]).toEqual([{}, '200'])
  },
)

describe('a setting of the programs that changes', () => {
  const change = (): void => put('config', felixConfiguration('default', { ...CONFIG, bpfExternalServiceMode: 'DSR' }))

  beforeEach(async () => {
    put('web', WEB)
    put('web-1', slice('web-1', { endpoints: ['10.1.2.3'] }))
    start()
    await until('dataplane.ready')
  })

  test('has new programs loaded, whose tables get everything again, and old ones retired', async () => {
    const before = kernel.hooked.interfaces.there.get('eth0/ingress')?.program
    change()
    await until('programs.retired')
    expect(kernel.programs.attempts.map(({ knobs }) => knobs.dsr)).toEqual([false, true])
    expect([kernel.programs.list(), kernel.programs.handles]).toEqual([['g1'], 1])
    expect(kernel.hooked.interfaces.there.get('eth0/ingress')?.program).not.toBe(before)
    expect([frontends(), backends()]).toEqual([['10.96.0.7:80'], ['10.1.2.3:8080']])
    // its tables know all rows, so a change is written by them
    put('web-1', slice('web-1', { endpoints: ['10.1.2.9'] }))
    await expect.poll(backends, SOON).toEqual(['10.1.2.9:8080'])
  })

  test('leaves the old programs at work when the new are refused', async () => {
    kernel.programs.refusal = new Error('no memory')
    change()
    await until('programs.rejected')
    expect(await unmet()).toEqual({ 'dataplane.programs': 'no memory' })
    put('web-1', slice('web-1', { endpoints: ['10.1.2.9'] }))
    await expect.poll(backends, SOON).toEqual(['10.1.2.9:8080'])
    kernel.programs.refusal = undefined
    await until('programs.retired')
    expect([await unmet(), kernel.programs.list()]).toEqual([{}, ['g1']])
  })
})

test('programs that are refused at the start are tried again, and then get what came meanwhile', async () => {
  kernel.programs.refusal = new Error('no memory')
  start()
  await until('programs.rejected')
  expect(await unmet()).toMatchObject({ 'dataplane.programs': 'no memory' })
  put('web', WEB)
  kernel.programs.refusal = undefined
  await until('dataplane.ready')
  expect(frontends()).toEqual(['10.96.0.7:80'])
})

test('a kernel that cannot run the programs is left alone, and the reason can be asked for', async () => {
  kernel.unsupported = 'it is too old'
  const agent = start()
  await until('kernel.unsupported')
  await until('health.listening')
  expect(await unmet()).toMatchObject({ kernel: "it is too old: the node's networking is left as it was found" })
  expect([kernel.programs.attempts, kernel.commands, kernel.hooked.interfaces.list()]).toEqual([[], [], []])
  expect(await metrics('netplane_synced', 'netplane_policy_rules ')).toEqual(['netplane_synced 0'])
  await agent.stop()
  await expect(page('/readiness')).rejects.toThrow()
})

test('an agent that comes after another writes nothing', async () => {
  put('web', WEB)
  const first = start()
  await until('dataplane.ready')
  await first.stop()
  const written = (): number =>
    kernel.programs.maps.values().reduce((sum, { calls }) => sum + calls.filter((one) => one !== 'dump').length, 0)
  const before = written()
  log = new ListLog()
  start()
  await until('dataplane.ready')
  expect(log.of('dataplane.adopted')).toMatchObject([{ written: {} }])
  expect(written()).toBe(before)
})

test('a pod of this node gets its address, and programs at its veth', async () => {
  const web = { namespace: 'default', name: 'web' }
  const veth = workloadInterface(web, 'npl')
  kernel = new FakeKernel(folder, { index: 1, name: 'lo' }, ETH0, { index: 7, name: veth, kind: 'veth' })
  put('web', pod('web', { node: 'n1', ips: ['10.1.1.5'] }))
  start()
  await until('dataplane.ready')
  expect(kernel.hooked.interfaces.list().sort()).toEqual(['eth0/egress', 'eth0/ingress', `${veth}/egress`, `${veth}/ingress`].sort())
  const own = kernel.programs.rows(catalogue.np_addrs).find(([addr]) => formatAddr(addr) === '10.1.1.5')
  expect(own?.[1].ifindex).toBe(7)
})

test('a device that comes later gets the programs, and one that goes is forgotten', async () => {
  put('config', felixConfiguration('default', { ...CONFIG, bpfDataIfacePattern: '^eth' }))
  start()
  await until('dataplane.ready')
  kernel.links.set({ index: 3, name: 'eth1', addresses: [{ addr: '198.51.100.1', bits: 24 }] })
  const hooks = (): string[] => kernel.hooked.interfaces.list().sort()
  await expect.poll(hooks, SOON).toEqual(['eth0/egress', 'eth0/ingress', 'eth1/egress', 'eth1/ingress'])
  const self = (): string[] => kernel.programs.rows(catalogue.np_addrs).map(([addr]) => formatAddr(addr))
  expect(self()).toContain('198.51.100.1')
  kernel.links.remove(3)
  await expect.poll(hooks, SOON).toEqual(['eth0/egress', 'eth0/ingress'])
  await expect.poll(self, SOON).not.toContain('198.51.100.1')
})
