// SPDX-License-Identifier: Apache-2.0
/** When kube-proxy's rules go, and what the agent logs when they come back. Layer: test. */
import { beforeEach, expect, test } from 'vitest'
import { ProxyHandover, PROXY_RULES } from '#agent/dataplane/kube-proxy/handover.ts'
import { CommandError } from '#lib/base/errors.ts'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import { FakeClock } from '../../../support/fakes/fake-clock.ts'

const RULES = 'table ip kube-proxy\n'
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
      run: (command, input = '') => Promise.resolve(this.#run(command, input)),
    })
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
