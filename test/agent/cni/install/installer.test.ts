// SPDX-License-Identifier: Apache-2.0
/** What runtimes find of us, when the folders in which they look for it become others. Layer: test. */
import { closeSync, mkdirSync, mkdtempSync, openSync, readdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { silentLog } from '#lib/obs/log.ts'
import { Installer } from '#agent/cni/install/installer.ts'

const FILES = ['10-netplane.conflist', 'netplane-cni']
let root: string
/** they keep their folders, as mounts do */
let open: readonly number[]
let installer: Installer

const place = (path: string): string => join(root, path)
const found = (): readonly string[] => ['etc/cni/net.d', 'opt/cni/bin'].flatMap((folder) => readdirSync(place(folder)))

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'netplane-installer-'))
  for (const folder of ['etc/cni/net.d', 'opt/cni/bin']) mkdirSync(place(folder), { recursive: true })
})

afterEach(() => {
  for (const one of open) closeSync(one)
  rmSync(root, { recursive: true })
})

function installerOf(isMounted: boolean): Installer {
  open = isMounted ? [openSync(place('etc/cni/net.d'), 'r'), openSync(place('opt/cni/bin'), 'r')] : []
  const [confDir = place('etc/cni/net.d'), binDir = place('opt/cni/bin')] = open.map((one) => `/proc/self/fd/${one}`)
  return new Installer({
    ...{ confDir, binDir, socket: '/run/x', chained: false, hostPorts: false, mtu: undefined, log: silentLog },
    ...(isMounted ? { onNode: { root, confDir: '/etc/cni/net.d', binDir: '/opt/cni/bin' } } : {}),
    ...{ readyFile: place('ready'), foldersFile: place('folders.json') },
  })
}

describe.each([
  ['seen by paths', false],
  ['mounted in a container', true],
])('folders that are %s', (_, isMounted) => {
  beforeEach(async () => {
    installer = installerOf(isMounted)
    await installer.renew()
    expect(found()).toEqual(FILES)
  })

  test.each(['etc/cni/net.d', 'opt/cni/bin', 'etc/cni', 'opt', 'etc'])('%s is removed, and the files are there again', async (folder) => {
    rmSync(place(folder), { recursive: true })
    await installer.renew()
    expect(found()).toEqual(FILES)
  })

  test.each(['etc/cni/net.d', 'opt/cni/bin', 'etc/cni', 'opt'])('%s is moved away, and the files are there again', async (folder) => {
    renameSync(place(folder), place('moved'))
    await installer.renew()
    expect(found()).toEqual(FILES)
  })

  test('other folders are moved to their places, and get the files', async () => {
    for (const folder of ['etc/cni/net.d', 'opt/cni/bin']) {
      mkdirSync(place('other'))
      renameSync(place(folder), place(`${folder}.old`))
      renameSync(place('other'), place(folder))
    }
    await installer.renew()
    expect(found()).toEqual(FILES)
  })

  test('a folder becomes a link to another one of the node, which gets the files', async () => {
    rmSync(place('opt'), { recursive: true })
    mkdirSync(place('var/opt'), { recursive: true })
    symlinkSync('var/opt', place('opt'))
    await installer.renew()
    expect(readdirSync(place('var/opt/cni/bin'))).toEqual(['netplane-cni'])
  })

  test('the plugin of another version in a folder that was put there is replaced', async () => {
    renameSync(place('opt/cni/bin'), place('moved'))
    mkdirSync(place('opt/cni/bin'))
    writeFileSync(place('opt/cni/bin/netplane-cni'), 'other')
    await installer.renew()
    expect(statSync(place('opt/cni/bin/netplane-cni')).size).toBeGreaterThan(1000)
  })

  test('a file in the place of a folder is told, and once it is gone the files are there again', async () => {
    rmSync(place('etc/cni'), { recursive: true })
    writeFileSync(place('etc/cni'), '')
    await expect(installer.renew()).rejects.toMatchObject({ code: 'ENOTDIR' })
    rmSync(place('etc/cni'))
    await installer.renew()
    expect(found()).toEqual(FILES)
  })
})

test('a mount that is not what the node has at the path is used as it is', async () => {
  mkdirSync(place('edited'))
  renameSync(place('opt/cni/bin'), place('elsewhere'))
  renameSync(place('edited'), place('opt/cni/bin'))
  installer = installerOf(true)
  renameSync(place('opt/cni/bin'), place('edited'))
  renameSync(place('elsewhere'), place('opt/cni/bin'))
  await installer.renew()
  expect([readdirSync(place('edited')), found()]).toEqual([['netplane-cni'], ['10-netplane.conflist']])
})
