// SPDX-License-Identifier: Apache-2.0
/** When what an older version has left goes, and what the log has if it comes again. Layer: test. */
import { beforeEach, expect, test } from 'vitest'
import { Leftovers, LEFTOVERS } from '#agent/dataplane/leftovers/leftovers.ts'
import { NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import { CommandError } from '#lib/base/errors.ts'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import { FakeClock } from '../../../support/fakes/fake-clock.ts'
import { FakeNetlink } from '../../../support/fakes/fake-netlink.ts'

const SAVED = '*filter\n:npl-FORWARD - [0:0]\n-A FORWARD -j npl-FORWARD\nCOMMIT\n'
const HOUR = 3_600_000

/** A node with one iptables and nft. */
class Node {
  readonly clock = new FakeClock()
  readonly health = new Health(() => this.clock.wall())
  readonly events: string[] = []
  /** what was asked that changes something, in order */
  readonly written: string[] = []
  rules = SAVED
  tables = 'table ip netplane\n'
  serves = true
  broken = false
  readonly #leftovers: Leftovers

  constructor() {
    const say = (_: unknown, event: string): void => void this.events.push(event)
    this.health.expect(LEFTOVERS, 'none')
    this.#leftovers = new Leftovers({
      clock: this.clock,
      log: { ...silentLog, info: say, warn: say },
      health: this.health,
      serves: () => this.serves,
      interfaces: { all: () => [], byName: () => undefined },
      netlink: new NetlinkExchange(new FakeNetlink()),
      onDeviceGone: () => undefined,
      run: (command, input = '') => Promise.resolve(this.#run(command, input)),
    })
  }

  get reason(): string | undefined {
    return this.health.report().conditions.find(({ name, ok }) => name === LEFTOVERS && !ok)?.reason
  }

  async pass(ms: number): Promise<void> {
    for (let second = 0; second < ms; second += 1000) {
      this.clock.advance(1000)
      await this.#leftovers.tick()
    }
  }

  #run([program = '', ...args]: readonly string[], input: string): string | undefined {
    if (this.broken) throw new CommandError({ command: program, status: 1, stderr: 'busy' })
    if (program === 'iptables-nft-save') return this.rules
    if (program === 'nft' && args[0] === 'list') return this.tables
    if (!['iptables-nft-restore', 'nft'].includes(program)) return undefined
    this.written.push(/npl-FORWARD|netplane-takeover|delete table ip netplane/.exec(input)?.[0] ?? input)
    if (program === 'iptables-nft-restore') this.rules = ''
    else if (input.startsWith('delete')) this.tables = ''
    return ''
  }
}

let node: Node
beforeEach(() => {
  node = new Node()
})

test('nothing goes before our programs serve; then what rules have translated is kept first', async () => {
  node.serves = false
  await node.pass(60_000)
  expect([node.written, node.events]).toEqual([[], []])
  node.serves = true
  await node.pass(1000)
  expect(node.written).toEqual(['netplane-takeover', 'npl-FORWARD', 'delete table ip netplane'])
  expect([node.events, node.reason]).toEqual([['leftovers.removed'], undefined])
})

test('an agent that writes them again is named, and fought once an hour', async () => {
  await node.pass(1000)
  node.rules = SAVED
  await node.pass(60_000)
  expect(node.events).toEqual(['leftovers.removed', 'leftovers.restored'])
  expect(node.reason).toContain('An older agent runs on this node')
  node.rules = SAVED
  await node.pass(HOUR - 60_000)
  expect(node.rules).toBe(SAVED)
  await node.pass(60_000)
  expect(node.rules).toBe('')
  await node.pass(HOUR + 60_000)
  expect([node.events.length, node.reason]).toEqual([3, undefined])
})

test('a node without any is looked at once an hour, and nothing is written', async () => {
  Object.assign(node, { rules: '', tables: '' })
  await node.pass(60_000)
  node.rules = SAVED
  await node.pass(60_000)
  expect([node.written, node.events]).toEqual([[], []])
  await node.pass(HOUR)
  expect(node.events).toEqual(['leftovers.removed'])
})

test('tools that fail are asked again within a minute', async () => {
  node.broken = true
  await node.pass(1000)
  expect([node.events, node.reason]).toEqual([['leftovers.failed'], expect.stringContaining('busy')])
  node.broken = false
  await node.pass(60_000)
  expect([node.events, node.reason]).toEqual([['leftovers.failed', 'leftovers.removed'], undefined])
})
