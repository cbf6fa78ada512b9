// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConfigError } from '#lib/base/errors.ts'
import { chainedConflist, conflistText, installConflist, refuseOthersBefore, removeOldLists } from '#agent/cni/install/conflist.ts'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-conflist-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true })
})

function chained(list: object): unknown {
  writeFileSync(join(folder, '10-theirs.conflist'), JSON.stringify(list))
  try {
    const text = chainedConflist(folder, '/s')?.text
    return text === undefined ? undefined : (JSON.parse(text) as unknown)
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown
    return thrown.message
  }
}

const BRIDGE = { type: 'bridge' }
const OURS = { type: 'netplane-cni', socket: '/s' }
const VERSIONS = '0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0: no pod would start'

test.each([
  ['a list', { cniVersion: '0.3.0', name: 'a', plugins: [BRIDGE] }, { cniVersion: '0.3.0', name: 'a', plugins: [BRIDGE, OURS] }],
  [
    'a plugin by itself',
    { cniVersion: '1.0.0', name: 'a', ...BRIDGE },
    { cniVersion: '1.0.0', name: 'a', plugins: [{ cniVersion: '1.0.0', name: 'a', ...BRIDGE }, OURS] },
  ],
  ['one with us in it, of any version', { cniVersion: '0.2.0', name: 'a', plugins: [BRIDGE, OURS] }, undefined],
  [
    'an old version',
    { cniVersion: '0.2.0', name: 'a', plugins: [BRIDGE] },
    `10-theirs.conflist: cniVersion: "0.2.0" is not one of ${VERSIONS}`,
  ],
  [
    'versions to choose from, of which we speak some',
    { cniVersion: '1.0.0', cniVersions: ['0.2.0', '1.0.0', '1.1.0', '1.2.0'], name: 'a', plugins: [BRIDGE] },
    { cniVersion: '1.0.0', cniVersions: ['1.0.0', '1.1.0'], name: 'a', plugins: [BRIDGE, OURS] },
  ],
  ['no version', { name: 'a', plugins: [BRIDGE] }, `10-theirs.conflist: cniVersion: is missing, and must be one of ${VERSIONS}`],
  ['a plugin of no version', { name: 'a', ...BRIDGE }, `10-theirs.conflist: cniVersion: is missing, and must be one of ${VERSIONS}`],
  ['no plugins', { cniVersion: '1.0.0', name: 'a', plugins: [] }, '10-theirs.conflist: plugins: must be objects with a type'],
])('%s', (_, list, expected) => {
  expect(chained(list)).toEqual(expected)
})

describe('a list of loopback alone', () => {
  const LOOPBACK = { cniVersion: '1.0.0', name: 'lo', plugins: [{ type: 'loopback' }] }

  test.each([
    ['a list', '05-loopback.conflist', LOOPBACK],
    ['a plugin by itself', '05-loopback.conf', { cniVersion: '1.0.0', name: 'lo', type: 'loopback' }],
    ['one of an old version', '99-loopback.conflist', { ...LOOPBACK, cniVersion: '0.2.0' }],
  ])('gives pods no network: the one beside it is chained to, with %s', (_, name, list) => {
    writeFileSync(join(folder, name), JSON.stringify(list))
    const theirs = { cniVersion: '1.0.0', name: 'a', plugins: [{ type: 'loopback' }, BRIDGE] }
    expect(chained(theirs)).toEqual({ ...theirs, plugins: [...theirs.plugins, OURS] })
  })

  test('a list of loopback alone is none to chain to', () => {
    expect(chained(LOOPBACK)).toBeUndefined()
    expect(chainedConflist(folder, '/s')).toBeUndefined()
  })

  test('that runtimes take before ours is named all the same', () => {
    writeFileSync(join(folder, '00-00-lo.conflist'), JSON.stringify(LOOPBACK))
    expect(chained({ cniVersion: '1.0.0', name: 'a', plugins: [BRIDGE] })).toMatch(/00-00-lo\.conflist: comes before 00-00-netplane/)
    expect(() => refuseOthersBefore(folder)).toThrow(/00-00-lo\.conflist.*comes before 10-netplane/)
  })
})

const ALL = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0']
test.each([
  ['alone', undefined, { cniVersion: '1.0.0', cniVersions: ALL }],
  ['beside a portmap of today', ['0.1.0', ...ALL, '1.2.0'], { cniVersion: '1.0.0', cniVersions: ALL }],
  ['beside one of 2022', ['0.4.0', '1.0.0'], { cniVersion: '1.0.0', cniVersions: ['0.4.0', '1.0.0'] }],
  ['beside one of 2020', ['0.3.1', '0.4.0'], { cniVersion: '0.4.0', cniVersions: ['0.3.1', '0.4.0'] }],
])('our own list, %s, is of versions that both speak', (_, portmap, expected) => {
  expect(JSON.parse(conflistText({ socket: '/s', mtu: undefined, portmap }))).toMatchObject(expected)
})

test.each([
  ['portmap serves host ports', ['1.0.0'], [OURS, { type: 'portmap', capabilities: { portMappings: true }, snat: true }]],
  ['without it we are asked for them, and refuse', undefined, [{ ...OURS, capabilities: { portMappings: true } }]],
  ['where there are to be none no plugin is asked', 'none', [OURS]],
] as const)('%s', (_, portmap, plugins) => {
  expect(JSON.parse(conflistText({ socket: '/s', mtu: undefined, portmap }))).toMatchObject({ plugins })
  expect(JSON.parse(conflistText({ socket: '/s', mtu: 1400, portmap }))).toMatchObject({
    plugins: plugins.map((plugin) => (plugin.type === OURS.type ? { ...plugin, mtu: 1400 } : plugin)),
  })
})

test('a portmap that speaks none of ours is named', () => {
  expect(() => conflistText({ socket: '/s', mtu: undefined, portmap: ['0.1.0', '1.1.0'] })).toThrow(
    /portmap: speaks 0\.1\.0, 1\.1\.0, of which/,
  )
})

test('lists of versions before this one go, and no others', () => {
  const lists = { '10-canal.conflist': 'netplane', '10-flannel.conflist': 'flannel', '90-x.conf': 'netplane' }
  for (const [name, type] of Object.entries(lists)) {
    const plugin = { cniVersion: '0.3.1', name: 'k8s-pod-network', type }
    writeFileSync(join(folder, name), JSON.stringify(name.endsWith('.conf') ? plugin : { ...plugin, plugins: [plugin, BRIDGE] }))
  }
  writeFileSync(join(folder, '20-broken.conflist'), '{')
  expect(removeOldLists(folder)).toEqual(['10-canal.conflist', '90-x.conf'])
  expect(readdirSync(folder).sort()).toEqual(['10-flannel.conflist', '20-broken.conflist'])
  expect(removeOldLists(folder)).toEqual([])
})

test('a list that runtimes take before our own is named', () => {
  installConflist(folder, { kind: 'own', text: '{}' })
  writeFileSync(join(folder, '10-zzz.conflist'), '{}')
  expect(() => refuseOthersBefore(folder)).not.toThrow()
  writeFileSync(join(folder, '10-flannel.conflist'), '{}')
  expect(() => refuseOthersBefore(folder)).toThrow(/10-flannel\.conflist.*comes before 10-netplane\.conflist/)
})
