// SPDX-License-Identifier: Apache-2.0
/** What is said of policies that are not in force as they were written. Layer: test. */
import { expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'
import type { ObjectChange, Snapshot } from '#lib/model/snapshot.ts'
import { PolicyBook, POLICIES } from '#agent/policy-book.ts'
import { silentLog } from '#lib/obs/log.ts'
import { storeOf, type Manifest } from '../support/build.ts'

const global = (name: string, spec: Manifest): Manifest => ({
  apiVersion: 'netplane.io/v3',
  kind: 'GlobalNetworkPolicy',
  metadata: { name },
  spec: { selector: 'all()', ...spec },
})

function setup(): { readonly said: string[]; readonly health: Health; readonly book: PolicyBook } {
  const said: string[] = []
  const say = (fields: object, event: string): void => void said.push(`${event} ${String(Object.values(fields)[0])}`)
  const health = new Health(() => 0)
  return { said, health, book: new PolicyBook({ health, log: { ...silentLog, warn: say, info: say } }) }
}

const reasonOf = (health: Health): string | undefined => health.report().conditions.find(({ name }) => name === POLICIES)?.reason
const CHANGED: readonly ObjectChange[] = [{ kind: 'Tier', before: undefined, after: undefined }]

test('all is well', () => {
  const { said, health, book } = setup()
  book.note(storeOf([global('good', {})]).snapshot, undefined)
  expect([said, health.report().ready, reasonOf(health)]).toEqual([[], true, ''])
  expect([...book.counts()]).toEqual([
    ['in-force', 1],
    ['closed', 0],
    ['no-tier', 0],
  ])
})

test('closed ones, and those of tiers that nobody has, are said once, and when they are mended; the node stays ready', () => {
  const { said, health, book } = setup()
  const { snapshot } = storeOf([global('good', {}), global('lost', { tier: 'nowhere' })])
  const [good] = snapshot.policies.values()
  const policies: Snapshot['policies'] = new Map([
    ...snapshot.policies,
    ...(good === undefined ? [] : [['c', { ...good, name: 'bad', closed: true }] as const]),
  ])
  book.note({ ...snapshot, policies }, undefined)
  book.note({ ...snapshot, policies }, CHANGED)
  expect(said).toEqual(['policy.no-tier GlobalNetworkPolicy/lost', 'policy.closed GlobalNetworkPolicy/bad'])
  expect(reasonOf(health)).toMatch(
    /^GlobalNetworkPolicy\/lost: there is no Tier nowhere: the policy does nothing; GlobalNetworkPolicy\/bad: cannot be read/,
  )
  expect([...book.counts().values(), health.report().ready]).toEqual([1, 1, 1, true])
  book.note({ ...snapshot, policies: new Map() }, [])
  expect(said).toHaveLength(2)
  book.note({ ...snapshot, policies: new Map() }, CHANGED)
  expect(said.slice(2).sort()).toEqual(['policy.mended GlobalNetworkPolicy/bad', 'policy.mended GlobalNetworkPolicy/lost'])
  expect(reasonOf(health)).toBe('')
})
