// SPDX-License-Identifier: Apache-2.0
/** When kube-proxy's rules go, and what the agent logs when they come back. Layer: test. */
import { beforeEach, expect, test } from 'vitest'
import { ProxyHandover, PROXY_RULES } from '#agent/dataplane/kube-proxy/handover.ts'
import { CommandError } from '#lib/base/errors.ts'
import { Health } from '#lib/obs/health.ts'
import { parseAddr } from '#lib/base/ip.ts'
import { silentLog } from '#lib/obs/log.ts'
import { FakeClock } from '../../../support/fakes/fake-clock.ts'

const RULES = 'table ip kube-proxy\n'
const BOTH = `${RULES}table ip6 kube-proxy\n`
const SERVICES = ['10.96.0.1', 'fd00:96::1'].map(parseAddr)
const MINUTE = 60_000

/** A node where nft is the only tool. */
class Node {
  readonly clock = new FakeClock()
  readonly health = new Health(() => this.clock.wall())
  readonly events: string[] = []
  /** texts that nft was given */
  readonly written: string[] = []
  tables = RULES
  ready = true
  wanted: boolean | undefined = true
  expected = false
  /** by family, a kube-proxy's whole table */
  readonly rules = { ip: '', ip6: '' }
  broken = false
  readonly #handOver: ProxyHandover

  constructor() {
    const say = (_: unknown, event: string): void => void this.events.push(event)
    this.health.expect(PROXY_RULES, 'none')
    this.#handOver = new ProxyHandover({
      clock: this.clock,
      log: { ...silentLog, info: say, warn: say },
      health: this.health,
      serves: () => this.ready,
      wanted: () => this.wanted,
      expected: () => this.expected,
      addresses: () => SERVICES,
      run: (command, input = '') => Promise.resolve(this.#run(command, input)),
    })
  }

  get present(): boolean | undefined {
    return this.#handOver.isPresent
  }

  get condition(): boolean | undefined {
    return this.health.report().conditions.find(({ name }) => name === PROXY_RULES)?.ok
  }

  /** As many seconds as there are in it. */
  async pass(ms: number): Promise<void> {
    for (let second = 0; second < ms; second += 1000) {
      this.clock.advance(1000)
      await this.#handOver.tick()
    }
  }

  #run([program = '', ...args]: readonly string[], input: string): string | undefined {
    if (program !== 'nft') return undefined
    if (this.broken) throw new CommandError({ command: 'nft', status: 1, stderr: 'busy' })
    if (args[1] === 'table') return this.rules[args[2] === 'ip6' ? 'ip6' : 'ip']
    if (args[0] === 'list') return this.tables
    this.written.push(input)
    if (input.includes('delete table ip kube-proxy')) this.tables = ''
    return ''
  }
}

let node: Node
beforeEach(() => {
  node = new Node()
})

test('nothing goes before our programs serve and the settings are known; then all at once, after the takeover has begun', async () => {
  node.ready = false
  await node.pass(MINUTE)
  node.ready = true
  node.wanted = undefined
  await node.pass(MINUTE)
  expect([node.written, node.events]).toEqual([[], []])
  node.wanted = true
  await node.pass(1000)
  expect(node.written.map((text) => /netplane-takeover|delete table ip kube-proxy/.exec(text)?.[0])).toEqual([
    'netplane-takeover',
    'delete table ip kube-proxy',
  ])
  expect([node.events, node.condition, node.health.report().ready]).toEqual([['kube-proxy.removed'], true, true])
})

test('a kube-proxy that puts its rules back is logged once, not fought; when it is gone, what it left goes', async () => {
  await node.pass(1000)
  node.tables = RULES
  await node.pass(50 * MINUTE)
  expect(node.events).toEqual(['kube-proxy.removed', 'kube-proxy.restored'])
  expect([node.condition, node.health.report().ready]).toEqual([false, true])
  await node.pass(25 * MINUTE)
  expect(node.events).toEqual(['kube-proxy.removed', 'kube-proxy.restored', 'kube-proxy.removed', 'kube-proxy.cleared'])
  expect(node.condition).toBe(true)
})

test('rules that may not go are left, which is logged once; when they may go, they go at once', async () => {
  node.wanted = false
  await node.pass(70 * MINUTE)
  expect([node.events, node.written, node.condition]).toEqual([['kube-proxy.kept'], [], true])
  node.wanted = true
  await node.pass(1000)
  expect([node.events[1], node.tables]).toEqual(['kube-proxy.removed', ''])
})

test('without rules of kube-proxy nothing is written and nothing logged', async () => {
  node.tables = ''
  await node.pass(70 * MINUTE)
  expect([node.events, node.written, node.condition]).toEqual([[], [], true])
})

test('a tool that fails is a condition, and another attempt ten minutes later', async () => {
  node.broken = true
  await node.pass(9 * MINUTE)
  expect([node.events, node.condition]).toEqual([['kube-proxy.detect-failed'], false])
  node.broken = false
  await node.pass(2 * MINUTE)
  expect([node.events[1], node.condition]).toEqual(['kube-proxy.removed', true])
})

test('rules of a kube-proxy that is to run stay, and are found as soon as it has written them; when it goes, they go', async () => {
  node.expected = true
  node.tables = ''
  await node.pass(MINUTE)
  node.tables = BOTH
  Object.assign(node.rules, { ip: '{ 10.96.0.1, 10.96.0.11 }', ip6: '{ fd00:96::1 }' })
  await node.pass(1000)
  expect([node.events, node.present, node.condition]).toEqual([['kube-proxy.kept'], true, true])
  await node.pass(70 * MINUTE)
  expect(node.written).toEqual([])
  node.expected = false
  await node.pass(1000)
  expect([node.events[1], node.tables, node.present]).toEqual(['kube-proxy.removed', '', false])
})

test('a kube-proxy that is to run is there once its rules have the services of both families, and stays until they go', async () => {
  node.expected = true
  node.tables = BOTH
  await node.pass(MINUTE)
  expect([node.present, node.events]).toEqual([false, []])
  node.rules.ip = '{ 10.96.0.1 . tcp . 443 : goto api }'
  await node.pass(MINUTE)
  expect(node.present).toBe(false)
  node.rules.ip6 = '{ fd00:96::1 . tcp . 443 : goto api }'
  await node.pass(1000)
  expect(node.present).toBe(true)
  Object.assign(node.rules, { ip: '', ip6: '' })
  await node.pass(20 * MINUTE)
  expect(node.present).toBe(true)
  node.tables = ''
  await node.pass(20 * MINUTE)
  expect(node.present).toBe(false)
})
