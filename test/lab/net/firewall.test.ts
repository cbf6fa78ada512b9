// SPDX-License-Identifier: Apache-2.0
/** Other programs' firewalls on the nodes: what works in spite of them, and that the agent says what does not. Root.
 * Layer: test. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Endpoint } from '../../../lab/tools/address.ts'
import { DOCKER, FIREWALLD, ufw } from '../../agent/node/firewall/rules.ts'
import {
  FAMILIES,
  FAR,
  FAR_PORT,
  NODE_PORT,
  NODES,
  nodeAddress,
  podAddress,
  POD_PORT,
  PROTOS,
  serviceAddress,
  World,
  type Family,
  type Wishes,
} from './world.ts'

const world = new World('firewall')
const BASE: Wishes = { pools: { vxlanMode: 'CrossSubnet', natOutgoing: true }, endpoints: ['a-1', 'c-1'] }
/** of a process of node a */
const HOST_PORT = 7777

/** How each gets its rules, and how its users let pods through. */
const FIREWALLS = {
  docker: {
    rules: [['iptables-nft-restore', DOCKER]],
    remedy: [],
  },
  ufw: {
    rules: [
      ['iptables-nft-restore', ufw(4)],
      ['ip6tables-nft-restore', ufw(6)],
    ],
    remedy: ['iptables-nft -A ufw-user-input -s 10.28.0.0/16 -j ACCEPT', 'ip6tables-nft -A ufw6-user-input -s fd00:2800::/32 -j ACCEPT'],
  },
  firewalld: {
    rules: [['nft -f -', FIREWALLD]],
    remedy: [
      'nft insert rule inet firewalld filter_INPUT_ZONES ip saddr 10.28.0.0/16 accept',
      'nft insert rule inet firewalld filter_INPUT_ZONES ip6 saddr fd00:2800::/32 accept',
    ],
  },
} as const

beforeAll(async () => {
  await world.up(BASE)
  await world.serve('far', FAR_PORT)
  await world.serve('node/a', HOST_PORT)
})
afterAll(() => world.down())
afterEach(async () => {
  for (const node of NODES) await world.lab.mustRun(`node/${node}`, ['nft', 'flush', 'ruleset'])
})

async function install(name: keyof typeof FIREWALLS): Promise<void> {
  for (const node of NODES)
    for (const [command, input] of FIREWALLS[name].rules) await world.lab.mustRun(`node/${node}`, command.split(' '), { input })
}

function endpoints(address: string, port: number): Endpoint[] {
  return PROTOS.map((proto) => ({ proto, address, port }))
}

/** What passes the programs alone, or is accepted as an answer. */
async function works(): Promise<void> {
  const each = async (from: string, to: readonly Endpoint[], answer: readonly string[]): Promise<void> => {
    for (const one of to)
      await expect
        .poll(() => world.ask(from, one, { count: 8, timeoutMs: 400 }), {
          message: `${from} to ${one.proto} ${one.address} ${one.port}`,
        })
        .toEqual(answer)
  }
  for (const family of FAMILIES) {
    const own = (pod: 'a-1' | 'a-2'): string => podAddress(pod, family)
    const client = world.client(family)
    await each('client', endpoints(nodeAddress('a', family), NODE_PORT), [`a-1 < ${client}`, `c-1 < ${client}`])
    for (const pod of ['a-2', 'b-1', 'c-1'] as const)
      await each('a-1', endpoints(podAddress(pod, family), POD_PORT), [`${pod} < ${own('a-1')}`])
    await each('a-2', endpoints(serviceAddress(family), 80), [`a-1 < ${own('a-2')}`, `c-1 < ${own('a-2')}`])
    await each('a-1', endpoints(FAR[family], FAR_PORT), [`far < ${nodeAddress('a', family)}`])
    for (const pod of ['a-1', 'b-1', 'c-1'] as const)
      await each('node/a', endpoints(podAddress(pod, family), POD_PORT), [`${pod} < ${nodeAddress('a', family)}`])
    await each('node/b', endpoints(serviceAddress(family), 80), [`a-1 < ${nodeAddress('b', family)}`, `c-1 < ${nodeAddress('b', family)}`])
  }
}

async function reachesHost(family: Family): Promise<string[]> {
  return await world.ask('a-1', { proto: 'tcp', address: nodeAddress('a', family), port: HOST_PORT }, { timeoutMs: 400 })
}

/** What an agent that starts now says of the node. */
async function said(): Promise<string> {
  await world.lab.agents.stop('a', 'SIGKILL')
  const before = world.lab.log('a').length
  await world.lab.agents.start('a')
  await world.lab.agents.waitReady('a')
  const page = async (): Promise<string> => (await world.lab.agents.get({ node: 'a', port: 9099, path: '/readiness' })).text
  const isLooked = async (): Promise<boolean> => !(await page()).includes('"node.firewall","ok":false,"reason":"starting"')
  await expect.poll(isLooked).toBe(true)
  const lines = world.lab
    .log('a')
    .slice(before)
    .split('\n')
    .filter((line) => line.includes('"firewall.detected"'))
  const condition = /"node.firewall","ok":(\w+),"reason":"([^"]*)/.exec(await page())
  expect(condition?.[1]).toBe(String(lines.length === 0))
  return condition?.[2] ?? ''
}

test('without a firewall the agent reports nothing', async () => {
  expect(await said()).toBe('')
})

describe.each(['docker', 'ufw', 'firewalld'] as const)('%s', (name) => {
  test('pods, services, the tunnel and the way out work in spite of it; the agent reports what does not', async () => {
    await install(name)
    await works()
    for (const family of FAMILIES) {
      const host = await reachesHost(family)
      if (name === 'docker') expect(host).toEqual([`node/a < ${podAddress('a-1', family)}`])
      else expect(host.join()).toMatch(/TIMEOUT|EHOSTUNREACH|ECONNREFUSED|EACCES/)
    }
    const finding = await said()
    if (name === 'docker') expect(finding).toBe('')
    else {
      expect(finding).toContain('drops packets of pods to processes of this node')
      expect(finding).toContain(name === 'ufw' ? 'ufw allow from' : 'firewall-cmd')
    }
    for (const command of FIREWALLS[name].remedy) await world.lab.mustRun('node/a', command.split(' '))
    if (name === 'docker') return
    for (const family of FAMILIES) await expect.poll(() => reachesHost(family)).toEqual([`node/a < ${podAddress('a-1', family)}`])
    expect(await said()).not.toContain('packets of pods to processes of this node')
  })
})
