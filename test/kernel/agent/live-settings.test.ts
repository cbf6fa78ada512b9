// SPDX-License-Identifier: Apache-2.0
/** Settings that change under a running agent: what is seen of each. Layer: test. */
import { existsSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { workloadInterface } from '#lib/model/pod.ts'
import type { AgentProcess, ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { felix, pod } from './manifests.ts'
import { hookPins, links, makeNode, PINS, POD_A } from './node.ts'

let machine: ScratchNode
let agent: AgentProcess

beforeEach(async () => {
  machine = await makeNode()
  say({})
  agent = machine.agent()
  await agent.event('dataplane.ready')
  await agent.event('metrics.listening')
})

afterEach(async () => {
  await machine[Symbol.asyncDispose]()
})

/** Settings of all nodes, and other objects. */
function say(spec: Readonly<Record<string, unknown>>, ...more: readonly unknown[]): void {
  machine.put('felix.json', [felix(machine.cgroup, { prometheusMetricsEnabled: true, ...spec }), ...more])
}

function hasHooks(device: string): boolean {
  const pins = links(machine)
  return hookPins(device).every((pin) => pin in pins)
}

/** Status and text of a page of the agent's; 0 where no server answers. */
function page(path: string): string {
  const script = `fetch("http://127.0.0.1:${path}").then((a) => a.text().then((t) => console.log(a.status, t)), () => console.log(0))`
  return machine.sh(`${process.execPath} -e '${script}'`)
}

const SEEN = [
  { spec: { interfaceExclude: 'eth0' }, look: () => hasHooks('eth0'), before: true, after: false },
  { spec: { prometheusMetricsEnabled: false }, look: () => page('9091/metrics').startsWith('200'), before: true, after: false },
  {
    spec: { prometheusProcessMetricsEnabled: false },
    look: () => page('9091/metrics').includes('\nprocess_cpu_seconds_total'),
    before: true,
    after: false,
  },
]

test.each(SEEN)('$spec', async ({ spec, look, before, after }) => {
  expect(look()).toBe(before)
  say(spec)
  await expect.poll(look).toBe(after)
  say({})
  await expect.poll(look).toBe(before)
})

test('new pods’ devices are known by another prefix', async () => {
  const device = workloadInterface({ namespace: 'default', name: 'b' }, 'abc')
  say({ interfacePrefix: 'abc' })
  machine.put('more.json', [pod('b', '10.1.1.6')])
  machine.sh(`ip link add ${device} type veth peer name peer0; ip link set ${device} up; ip link set peer0 up`)
  await expect.poll(() => hasHooks(device)).toBe(true)
  expect(hasHooks(POD_A)).toBe(true)
})

test('settings of this node go before those of all nodes, as long as they are there', async () => {
  const own = {
    apiVersion: 'netplane.io/v3',
    kind: 'FelixConfiguration',
    metadata: { name: 'node.n1' },
    spec: { interfaceExclude: 'eth0' },
  }
  const other = { ...own, metadata: { name: 'node.n2' }, spec: { prometheusMetricsEnabled: false } }
  say({ interfaceExclude: 'eth9' }, own, other)
  await expect.poll(() => hasHooks('eth0')).toBe(false)
  expect(page('9091/metrics')).toMatch(/^200 /)
  say({ interfaceExclude: 'eth9' }, other)
  await expect.poll(() => hasHooks('eth0')).toBe(true)
})

test('how much is logged', async () => {
  const times = (): number => agent.events('configuration.applied').filter(({ field }) => field === 'interfaceExclude').length
  const exclude = async (interfaceExclude: string, logSeverityScreen: string): Promise<void> => {
    say({ interfaceExclude, logSeverityScreen })
    await expect.poll(() => hasHooks('eth0')).toBe(interfaceExclude !== 'eth0')
  }
  await exclude('eth0', 'Error')
  const before = times()
  await exclude('eth9', 'Error')
  expect(times()).toBe(before)
  await exclude('eth0', 'Info')
  await exclude('eth9', 'Info')
  expect(times()).toBeGreaterThan(before)
})

/** State that other processes can spoil without an event to the agent. */
interface Spoilable {
  readonly spoil: () => void
  readonly isWhole: () => boolean
}

const PIN: Spoilable = {
  spoil: () => machine.sh(`rm -f /${PINS}/links/eth0:ingress`),
  isWhole: () => existsSync(machine.path(`${PINS}/links/eth0:ingress`)),
}
const SYSCTL: Spoilable = {
  spoil: () => machine.sh('echo 0 > /proc/sys/net/ipv4/conf/eth0/accept_local'),
  isWhole: () => machine.sh('cat /proc/sys/net/ipv4/conf/eth0/accept_local') === '1\n',
}

/** Says settings, and waits until the agent has them. */
async function set(spec: Readonly<Record<string, string>>): Promise<void> {
  const told = agent.lines.length
  say(spec)
  await agent.until(JSON.stringify(spec), () => {
    const news = agent.lines.slice(told).filter(({ event }) => event === 'configuration.applied')
    return Object.entries(spec).every(([field, value]) => news.some((line) => line['field'] === field && line['value'] === value))
  })
}

/** Waits until it has looked there twice, and whatever it looks at no more rarely has had its turn. */
async function mended(there: Spoilable): Promise<void> {
  for (let times = 0; times < 2; times++) {
    there.spoil()
    await expect.poll(there.isWhole).toBe(true)
  }
}

test('hooks, and routes with their sysctls, are checked as often as the settings ask for', async () => {
  for (const [seen, unseen, spec] of [
    [SYSCTL, PIN, { interfaceRefreshInterval: '1h', routeRefreshInterval: '1s' }],
    [PIN, SYSCTL, { interfaceRefreshInterval: '1s', routeRefreshInterval: '1h' }],
  ] as const) {
    await set(spec)
    await mended(seen)
    unseen.spoil()
    await mended(seen)
    expect(unseen.isWhole(), JSON.stringify(spec)).toBe(false)
  }
})

test('what the kernel tells of is put back at once, however rarely the agent looks', async () => {
  const forwarding = '/proc/sys/net/ipv4/ip_forward'
  await set({ interfaceRefreshInterval: '1h', routeRefreshInterval: '1h' })
  for (let times = 0; times < 2; times++) {
    machine.sh(`echo 0 > ${forwarding}`)
    // another program that puts its own back at once waits a second for us
    await expect.poll(() => machine.sh(`cat ${forwarding}`)).toBe('1\n')
  }
})

test('ipForwarding: while it is Disabled the node forwards as others say', async () => {
  const sysctls = ['/proc/sys/net/ipv4/ip_forward', '/proc/sys/net/ipv6/conf/all/forwarding'] as const
  const forwards = (): string => machine.sh(`cat ${sysctls.join(' ')}`).replaceAll('\n', '')
  // no pod has an address of IPv6
  expect(forwards()).toBe('10')
  const spec = { cidr: 'fd00:1::/64' }
  machine.put('pool.json', [{ apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata: { name: 'six' }, spec }])
  await expect.poll(forwards).toBe('11')
  await set({ ipForwarding: 'Disabled', routeRefreshInterval: '1s' })
  await mended(SYSCTL)
  expect(forwards()).toBe('11')
  for (const one of sysctls) machine.sh(`echo 0 > ${one}`)
  await mended(SYSCTL)
  expect(forwards()).toBe('00')
  say({})
  await expect.poll(forwards).toBe('11')
})
