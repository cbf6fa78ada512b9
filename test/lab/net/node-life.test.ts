// SPDX-License-Identifier: Apache-2.0
/** A node whose addresses or interfaces change under its agent, or while it was away; one that is stopped for a
 * while. Root. Layer: test. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { startFlow } from '../../../lab/traffic/traffic.ts'
import type { Endpoint } from '../../../lab/tools/address.ts'
import {
  FAMILIES,
  FAR,
  FAR_PORT,
  gateway,
  NODE_PORT,
  nodeAddress,
  podAddress,
  POD_PORT,
  PROTOS,
  World,
  type Family,
  type PodName,
  type Wishes,
} from './world.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'
import { programCommand } from '../../../testkit/base/program.ts'

/** Other settings are other programs, and loading them on three nodes takes its time. */
const SOON = { timeout: 45_000 }
/** Without anything to load: long before the agent compares its routes by itself, which it does each minute. */
const AT_ONCE = { timeout: HANG_MS, interval: 50 }
/** of a service of pod a-1 alone */
const NEAR_PORT = 30081
const world = new World('nodelife')
const BASE: Wishes = {
  pools: { vxlanMode: 'CrossSubnet', natOutgoing: true },
  endpoints: ['a-1', 'b-1'],
  others: [
    {
      name: 'near',
      address: (family) => (family === 4 ? '10.96.28.2' : 'fd00:96:28::2'),
      endpoints: ['a-1'],
      nodePort: NEAR_PORT,
      spec: { type: 'NodePort' },
    },
  ],
  felix: { bpfConnectTimeLoadBalancing: 'Disabled' },
}

beforeAll(async () => {
  await world.up(BASE)
  await world.serve('far', FAR_PORT)
})
afterAll(() => world.down())
afterEach(() => {
  world.put(BASE)
})

function other(family: Family): string {
  return family === 4 ? '172.28.1.42' : 'fd00:28:1::42'
}

function bits(family: Family): string {
  return family === 4 ? '24' : '64'
}

function nodePort(address: string, port = NODE_PORT): Endpoint[] {
  return PROTOS.map((proto) => ({ proto, address, port }))
}

async function answered(from: string, to: Endpoint): Promise<string> {
  const answers = await world.ask(from, to, { timeoutMs: 300, count: 12 })
  return [...new Set(answers.map((one) => one.split(' <')[0] ?? ''))].sort().join()
}

/** As DHCP clients do it at their worst: everything goes, with the routes that hung on it, and something else comes. */
async function readdress(node: 'a' | 'b' | 'c', from: (family: Family) => string, to: (family: Family) => string): Promise<void> {
  for (const family of FAMILIES) {
    await world.ip(`node/${node}`, 'address', 'del', `${from(family)}/${bits(family)}`, 'dev', 'eth0')
    await world.ip(`node/${node}`, 'address', 'add', `${to(family)}/${bits(family)}`, 'dev', 'eth0', ...(family === 6 ? ['nodad'] : []))
    await world.ip(`node/${node}`, `-${family}`, 'route', 'replace', 'default', 'via', gateway(node, family))
  }
}

/** Everything that runs over node b, as it should be with this address. */
async function serves(b: (family: Family) => string, soon = SOON): Promise<void> {
  const poll = (what: string, ask: () => Promise<unknown>) => expect.poll(ask, { ...soon, message: what })
  for (const family of FAMILIES) {
    for (const to of nodePort(b(family))) await poll(`node port at b, ${to.proto}${family}`, () => answered('client', to)).toBe('a-1,b-1')
    for (const to of nodePort(nodeAddress('a', family)))
      await poll(`node port at a, ${to.proto}${family}`, () => answered('client', to)).toBe('a-1,b-1')
    for (const [from, to] of [
      ['a-1', 'b-1'],
      ['b-1', 'a-1'],
      ['c-1', 'b-1'],
      ['b-1', 'c-1'],
    ] as const)
      for (const proto of PROTOS)
        await poll(`${from} to ${to}, ${proto}${family}`, () =>
          world.ask(from, { proto, address: podAddress(to, family), port: POD_PORT }),
        ).toEqual([`${to} < ${podAddress(from, family)}`])
    for (const proto of PROTOS)
      await poll(`b-1 to outside, ${proto}${family}`, () => world.ask('b-1', { proto, address: FAR[family], port: FAR_PORT })).toEqual([
        `far < ${b(family)}`,
      ])
    await poll(`node b to c-1, ${family}`, () =>
      world.ask('node/b', { proto: 'tcp', address: podAddress('c-1', family), port: POD_PORT }),
    ).toEqual([`c-1 < ${b(family)}`])
    await poll(`node a to b-1, ${family}`, () =>
      world.ask('node/a', { proto: 'tcp', address: podAddress('b-1', family), port: POD_PORT }),
    ).toEqual([`b-1 < ${nodeAddress('a', family)}`])
  }
}

async function ready(): Promise<void> {
  for (const node of ['a', 'b', 'c'])
    await expect.poll(async () => (await world.lab.agents.readiness(node)).text, { ...SOON, message: node }).toBe('')
}

const own = (family: Family): string => nodeAddress('b', family)

/** Streams that have nothing to do with node b. */
async function untouched() {
  const pod = (name: PodName, family: Family): Endpoint[] =>
    PROTOS.map((proto) => ({ proto, address: podAddress(name, family), port: POD_PORT }))
  const flows = await Promise.all([
    startFlow(world.lab, { from: 'a-1', to: FAMILIES.flatMap((family) => pod('c-1', family)) }),
    startFlow(world.lab, { from: 'client', to: FAMILIES.flatMap((family) => nodePort(nodeAddress('a', family), NEAR_PORT)) }),
    startFlow(world.lab, {
      from: 'c-1',
      to: FAMILIES.flatMap((family) => PROTOS.map((proto) => ({ proto, address: FAR[family], port: FAR_PORT }))),
    }),
  ])
  return async (): Promise<void> => {
    for (const flow of flows)
      for (const stream of (await flow.stop()).streams)
        expect(stream, JSON.stringify(stream)).toMatchObject({ lost: 0, reconnects: 0, errors: {} })
  }
}

test('the cluster serves as it was built', () => serves(own))

describe('another address', () => {
  test('while the agent runs, and back', async () => {
    const end = await untouched()
    await readdress('b', own, other)
    world.put({ ...BASE, moved: { b: other } })
    await serves(other)
    for (const family of FAMILIES)
      expect(await world.ip('node/a', `-${family}`, 'route', 'show', 'proto', '80')).not.toContain(`via ${own(family)} `)
    await ready()
    await readdress('b', other, own)
    world.put(BASE)
    await serves(own)
    await ready()
    await end()
  })

  test('connections in the tunnel to the node go on, whichever end of it has moved', async () => {
    world.put({ ...BASE, endpoints: ['b-1'] })
    for (const family of FAMILIES)
      for (const to of nodePort(nodeAddress('a', family))) await expect.poll(() => answered('client', to), SOON).toBe('b-1')
    const flow = await startFlow(world.lab, {
      from: 'client',
      to: FAMILIES.map((family) => ({ proto: 'tcp', address: nodeAddress('a', family), port: NODE_PORT })),
      drainMs: 40_000,
    })
    await readdress('b', own, other)
    world.put({ ...BASE, endpoints: ['b-1'], moved: { b: other } })
    await expect.poll(() => world.lab.log('a').includes('"flows.rerouted"'), AT_ONCE).toBe(true)
    for (const family of FAMILIES)
      for (const to of nodePort(nodeAddress('a', family))) await expect.poll(() => answered('client', to), SOON).toBe('b-1')
    await readdress('b', other, own)
    world.put({ ...BASE, endpoints: ['b-1'] })
    for (const family of FAMILIES)
      for (const to of nodePort(nodeAddress('a', family))) await expect.poll(() => answered('client', to), SOON).toBe('b-1')
    for (const stream of (await flow.stop()).streams)
      expect(stream, JSON.stringify(stream)).toMatchObject({ lost: 0, reconnects: 0, errors: {} })
    world.put(BASE)
    await serves(own)
  })

  test('while the agent was away, and back', async () => {
    const end = await untouched()
    await world.lab.agents.stop('b', 'SIGKILL')
    await readdress('b', own, other)
    world.put({ ...BASE, moved: { b: other } })
    await world.lab.agents.start('b')
    await world.lab.agents.waitReady('b')
    await serves(other)
    await world.lab.agents.stop('b', 'SIGKILL')
    await readdress('b', other, own)
    world.put(BASE)
    await world.lab.agents.start('b')
    await world.lab.agents.waitReady('b')
    await serves(own)
    await end()
  })

  test('beside the old one serves node ports, as long as it is there', async () => {
    for (const family of FAMILIES)
      await world.ip('node/b', 'address', 'add', `${other(family)}/${bits(family)}`, 'dev', 'eth0', ...(family === 6 ? ['nodad'] : []))
    for (const family of FAMILIES)
      for (const to of nodePort(other(family)))
        await expect.poll(() => answered('client', to), { ...AT_ONCE, message: to.proto }).toBe('a-1,b-1')
    for (const family of FAMILIES) await world.ip('node/b', 'address', 'del', `${other(family)}/${bits(family)}`, 'dev', 'eth0')
    const rows = async (): Promise<string> => (await world.lab.mustRun('node/b', [...CTL, 'bpf', 'routes'])).replaceAll(/\s+/g, ' ')
    for (const family of FAMILIES) await expect.poll(rows, AT_ONCE).not.toContain(other(family))
  })
})

const CTL = programCommand('cli')

describe('an interface', () => {
  test('that goes down and comes up again has everything back within seconds', async () => {
    const end = await untouched()
    await world.ip('node/b', 'link', 'set', 'eth0', 'down')
    await expect.poll(() => answered('client', { proto: 'tcp', address: own(4), port: NODE_PORT }), AT_ONCE).not.toContain('b-1')
    await world.ip('node/b', 'link', 'set', 'eth0', 'up')
    await world.ip('node/b', 'address', 'replace', `${own(6)}/64`, 'dev', 'eth0', 'nodad')
    // the kernel has dropped those of IPv4 without a word
    for (const family of FAMILIES)
      await expect
        .poll(() => world.ip('node/b', `-${family}`, 'route', 'show', 'proto', '80'), AT_ONCE)
        .toContain(`via ${nodeAddress('a', family)}`)
    for (const family of FAMILIES) await world.ip('node/b', `-${family}`, 'route', 'replace', 'default', 'via', gateway('b', family))
    await serves(own, AT_ONCE)
    await ready()
    await end()
  })

  test('that was down while the agent was away', async () => {
    await world.lab.agents.stop('b', 'SIGKILL')
    await world.ip('node/b', 'link', 'set', 'eth0', 'down')
    await world.lab.agents.start('b')
    await expect.poll(() => world.lab.log('b').includes('"dataplane.adopted"'), SOON).toBe(true)
    await world.ip('node/b', 'link', 'set', 'eth0', 'up')
    await world.ip('node/b', 'address', 'replace', `${own(6)}/64`, 'dev', 'eth0', 'nodad')
    for (const family of FAMILIES) await world.ip('node/b', `-${family}`, 'route', 'replace', 'default', 'via', gateway('b', family))
    await serves(own)
    await ready()
  })
})

describe('an agent that was stopped', () => {
  const pid = (): number => world.lab.agents.pid('b') ?? 0

  test('for a while finds out what it missed within seconds, and lost no connection', async () => {
    const end = await untouched()
    process.kill(pid(), 'SIGSTOP')
    const continued = pid()
    try {
      for (let count = 0; count < 3; count++) {
        // thousands of events of interfaces and addresses: more than its netlink socket has room for
        const many = Array.from({ length: 3000 }, (_, at) => `address ${at % 2 === 0 ? 'add' : 'del'} 10.200.0.1/32 dev lo\n`).join('')
        await world.lab.mustRun('node/b', ['ip', '-batch', '-'], { input: many })
      }
      await world.ip('node/b', 'address', 'add', `${other(4)}/24`, 'dev', 'eth0')
      await world.ip('node/b', 'route', 'flush', 'proto', '80')
      world.put({ ...BASE, endpoints: ['b-1'] })
      // what is there serves on
      expect(await answered('client', { proto: 'tcp', address: own(4), port: NODE_PORT })).toBe('a-1,b-1')
      await new Promise((resolve) => setTimeout(resolve, 15_000))
    } finally {
      process.kill(continued, 'SIGCONT')
    }
    for (const to of nodePort(own(4)))
      await expect.poll(() => answered('client', to), { ...AT_ONCE, message: 'changed endpoints' }).toBe('b-1')
    for (const to of nodePort(other(4))) await expect.poll(() => answered('client', to), { ...AT_ONCE, message: 'new address' }).toBe('b-1')
    expect(pid()).toBe(continued)
    expect(world.lab.log('b')).toMatch(/"agent.resumed".*|"stoppedMs":\d{5}/)
    await world.ip('node/b', 'address', 'del', `${other(4)}/24`, 'dev', 'eth0')
    world.put(BASE)
    await serves(own, AT_ONCE)
    await ready()
    await end()
  })
})
