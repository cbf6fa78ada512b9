// SPDX-License-Identifier: Apache-2.0
/** Constant traffic has an account of each of its kinds, with what was lost on purpose. Root. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { accountsText, ConstantTraffic, withLosses, type Account, type Way } from '../../../lab/traffic/accounts.ts'
import { Lab } from '../../../lab/lab.ts'
import { Manifests, TWO_NODES } from '../cluster.ts'

const manifests = new Manifests(TWO_NODES)
const ends = (address: string) => (['tcp', 'udp'] as const).map((proto) => ({ proto, address, port: 8080 }))
const WAYS: readonly Way[] = [
  { kind: 'near', from: 'one', to: ends('10.31.0.2') },
  { kind: 'far', from: 'one', to: ends('10.31.1.3') },
  { kind: 'far', from: 'two', to: ends('fd00:31:1::3') },
]
let lab: Lab

beforeAll(async () => {
  lab = await Lab.up({ name: 'taccounts', resources: manifests.dir, plain: true })
})
afterAll(async () => {
  await lab.down()
  manifests[Symbol.dispose]()
})

/** With this rule on node b for half a second. */
async function traffic(rule?: string): Promise<ReadonlyMap<string, Account>> {
  await using running = await ConstantTraffic.start(lab, WAYS, { stream: 50, fresh: 20 })
  const pause = (ms: number): Promise<unknown> => new Promise((resolve) => setTimeout(resolve, ms))
  await pause(500)
  if (rule !== undefined) {
    const chain = 'table inet test { chain forward { type filter hook forward priority 0;'
    await lab.mustRun('node/b', ['nft', '-f', '-'], { input: `${chain} ${rule}; }; }` })
    await pause(500)
    await lab.mustRun('node/b', ['nft', 'delete', 'table', 'inet', 'test'])
    await pause(500)
  }
  return new Map((await running.stop()).map((account) => [account.kind, account]))
}

test('a whole network loses nothing of any kind', async () => {
  const accounts = await traffic()
  const kinds = ['near', 'far'].flatMap((kind) => ['tcp stream', 'new tcp', 'udp stream', 'new udp'].map((form) => `${kind}, ${form}`))
  expect([...accounts.keys()].sort()).toEqual(kinds.sort())
  for (const account of accounts.values()) expect(account.sent, account.kind).toBeGreaterThan(8)
  expect(withLosses([...accounts.values()])).toEqual([])
})

test('what is dropped on the way counts as lost, for its kind alone', async () => {
  const accounts = await traffic('meta l4proto udp drop')
  expect([...accounts.values()].filter(({ lost }) => lost > 0).map(({ kind }) => kind)).toEqual(['far, udp stream', 'far, new udp'])
  expect(withLosses([...accounts.values()]).every(({ refused, reset }) => refused + reset === 0)).toBe(true)
  expect(accounts.get('far, udp stream')?.worstMs).toBeGreaterThan(450)
  expect(accountsText([...accounts.values()]).split('\n')).toHaveLength(9)
})

test('connections are refused or reset by what says so', async () => {
  const accounts = await traffic('meta l4proto tcp reject with tcp reset')
  expect(accounts.get('far, tcp stream')?.reset).toBeGreaterThan(1)
  expect(accounts.get('far, new tcp')?.refused).toBeGreaterThan(8)
  expect(withLosses([...accounts.values()]).map(({ kind }) => kind)).toEqual(['far, tcp stream', 'far, new tcp'])
})
