// SPDX-License-Identifier: Apache-2.0
/** What the agent reports of policies that are not in force as they were written. Layer: test. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '#lib/base/clock.ts'
import { DirectorySource } from '#lib/manifests/source.ts'
import { Health } from '#lib/obs/health.ts'
import type { ObjectChange, Snapshot } from '#lib/model/snapshot.ts'
import { PolicyReport, POLICIES } from '#agent/report/policies.ts'
import { silentLog } from '#lib/obs/log.ts'
import { Store } from '#lib/store/store.ts'
import { storeOf, type Manifest, v3 } from '../../support/build.ts'
import { until } from '../../../testkit/base/until.ts'

const global = (name: string, spec: Manifest): Manifest => ({
  apiVersion: 'netplane.io/v3',
  kind: 'GlobalNetworkPolicy',
  metadata: { name },
  spec: { selector: 'all()', ...spec },
})

function setup(): { readonly said: string[]; readonly health: Health; readonly book: PolicyReport } {
  const said: string[] = []
  const say = (fields: object, event: string): void => void said.push(`${event} ${String(Object.values(fields)[0])}`)
  const health = new Health(() => 0)
  return { said, health, book: new PolicyReport({ health, log: { ...silentLog, warn: say, info: say } }) }
}

const reasonOf = (health: Health): string | undefined => health.report().conditions.find(({ name }) => name === POLICIES)?.reason
const CHANGED: readonly ObjectChange[] = [{ kind: 'Tier', before: undefined, after: undefined }]

test('all is well', () => {
  const { said, health, book } = setup()
  book.note(storeOf([global('good', {})]).snapshot, undefined)
  expect([said, health.report().ready, reasonOf(health)]).toEqual([[], true, ''])
  expect([...book.counts()]).toEqual([
    ['in-force', 1],
    ['in-part', 0],
    ['last-good', 0],
    ['closed', 0],
    ['no-tier', 0],
    ['no-room', 0],
    ['refused', 0],
  ])
})

test('closed policies, and those of missing tiers, are logged once, and once when mended; the node stays ready', () => {
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
    /^GlobalNetworkPolicy\/lost: there is no Tier nowhere: closed for all that it selects; GlobalNetworkPolicy\/bad: cannot be read/,
  )
  expect([...book.counts().values(), health.report().ready]).toEqual([1, 0, 0, 1, 1, 0, 0, true])
  book.note({ ...snapshot, policies: new Map() }, [])
  expect(said).toHaveLength(2)
  book.note({ ...snapshot, policies: new Map() }, CHANGED)
  expect(said.slice(2).sort()).toEqual(['policy.recovered GlobalNetworkPolicy/bad', 'policy.recovered GlobalNetworkPolicy/lost'])
  expect(reasonOf(health)).toBe('')
})

test('policies that there is no room for are named until there is room, whatever else is reported of them', () => {
  const { said, health, book } = setup()
  const { snapshot } = storeOf([global('good', {}), global('lost', { tier: 'nowhere' })])
  book.noteNoRoom([])
  book.note(snapshot, undefined)
  const policies = ['GlobalNetworkPolicy/good', 'GlobalNetworkPolicy/lost']
  book.noteNoRoom([{ namespace: 'shop', table: 'rules', sets: false, most: 32768, policies }])
  expect(said).toEqual(['policy.no-tier GlobalNetworkPolicy/lost', 'policy.no-room GlobalNetworkPolicy/good'])
  expect(reasonOf(health)).toMatch(
    /GlobalNetworkPolicy\/good: on this node the policies of namespace shop have most rules, and there is room for 32768 of all policies: closed/,
  )
  expect([...book.counts().values(), health.report().ready]).toEqual([0, 0, 0, 0, 1, 1, 0, true])
  book.noteNoRoom([])
  expect(said.slice(2)).toEqual(['policy.recovered GlobalNetworkPolicy/good'])
})

test('network sets that are too large for a node are named beside the policies of their namespace', () => {
  const { health, book } = setup()
  const sets = [v3('NetworkSet', 'shop/large', { nets: ['10.0.0.0/8'] }), v3('NetworkSet', 'other/small', { nets: ['10.0.0.0/8'] })]
  const { snapshot } = storeOf([global('good', {}), ...sets])
  book.note(snapshot, undefined)
  book.noteNoRoom([{ namespace: 'shop', table: 'nets', sets: true, most: 32768, policies: ['GlobalNetworkPolicy/good'] }])
  expect([...book.wrong.keys()]).toEqual(['GlobalNetworkPolicy/good', 'NetworkSet/shop/large'])
  expect(reasonOf(health)).toMatch(/NetworkSet\/shop\/large: on this node the network sets of namespace shop have most prefixes/)
  book.noteNoRoom([])
  expect(reasonOf(health)).toBe('')
})

/** A directory as the agent reads it, and what the agent reports of it. */
async function directory(): Promise<ReturnType<typeof setup> & { readonly write: (name: string, objects: readonly Manifest[]) => void }> {
  const root = mkdtempSync(join(tmpdir(), 'np-book-'))
  const write = (name: string, objects: readonly Manifest[]): void => {
    writeFileSync(join(root, name), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
  }
  write('first.json', [global('fine', {}), global('other', {})])
  const book = setup()
  const changed = (): void => {
    book.book.note(store.snapshot, store.takeChanges())
  }
  const store = new Store({
    sources: ['directory'],
    onChange: changed,
    onStatus: (name, status) => {
      book.book.noteSource(name, status)
    },
  })
  const stop = new AbortController()
  const running = new DirectorySource({ directory: root, clock: systemClock }).run(store.sink('directory'), stop.signal)
  onTestFinished(async () => {
    stop.abort()
    await running
    rmSync(root, { recursive: true })
  })
  await until('all read', () => reasonOf(book.health) === '')
  return { ...book, write }
}

test('a bad update, a new one that is refused, and rules that are left out: condition, log and metric say the same, by name', async () => {
  const { said, health, book, write } = await directory()
  const counted = (): object => Object.fromEntries([...book.counts()].filter(([, count]) => count > 0))
  const set = (nets: readonly string[]): Manifest => ({
    apiVersion: 'netplane.io/v3',
    kind: 'GlobalNetworkSet',
    metadata: { name: 'office' },
    spec: { nets },
  })
  expect(counted()).toEqual({ 'in-force': 2 })
  write('second.json', [global('half', { ingress: [{ action: 'Log' }, { action: 'Allow' }] }), global('who', { selector: 'a b' }), set([])])
  await until('two named', () => said.length === 2)
  write('second.json', [
    global('half', { ingress: [{ action: 'Log' }, { action: 'Allow' }] }),
    global('who', { selector: 'a b' }),
    set(['x']),
  ])
  await until('three named', () => said.length === 3)
  write('first.json', [global('fine', { ingress: 'none' }), global('other', {})])
  await until('four named', () => said.length === 4)
  expect([...said].sort()).toEqual([
    'policy.in-part GlobalNetworkPolicy/half',
    'policy.last-good GlobalNetworkPolicy/fine',
    'policy.last-good GlobalNetworkSet/office',
    'policy.refused GlobalNetworkPolicy/who',
  ])
  expect(reasonOf(health)?.split('; ')).toEqual([
    'GlobalNetworkPolicy/fine: spec.ingress: must be a list: the last good version stays in force',
    expect.stringMatching(/^GlobalNetworkSet\/office: spec\.nets\[0\]: .*: the last good version stays in force$/),
    'GlobalNetworkPolicy/half: spec.ingress[0].action: Log is not supported in eBPF mode: the rule is left out',
    expect.stringMatching(/^GlobalNetworkPolicy\/who: spec\.selector: .*: nothing of it is in force$/),
  ])
  expect(counted()).toEqual({ 'in-force': 1, 'in-part': 1, 'last-good': 2, refused: 1 })
  write('second.json', [])
  write('first.json', [global('fine', {}), global('other', {})])
  await until('all is well again', () => reasonOf(health) === '' && book.counts().get('in-force') === 2)
})

test('a file that cannot be parsed is reported for each object that it gave', async () => {
  const { health, book, write } = await directory()
  write('first.json', [{ half: 'an object' }])
  await until('both named', () => book.counts().get('last-good') === 2)
  expect(reasonOf(health)).toMatch(
    /^GlobalNetworkPolicy\/fine: cannot be read: the last good version .* GlobalNetworkPolicy\/other: cannot/,
  )
})

test('a new set with a prefix that cannot be read is in force without it, and named', async () => {
  const { health, book, write } = await directory()
  const set = { apiVersion: 'netplane.io/v3', kind: 'GlobalNetworkSet', metadata: { name: 'office' }, spec: { nets: ['10.0.0.0/8', 'x'] } }
  write('second.json', [set])
  await until('it is named', () => book.counts().get('in-part') === 1)
  expect(reasonOf(health)).toMatch(/^GlobalNetworkSet\/office: spec\.nets\[1\]: must be an IP address/)
})
