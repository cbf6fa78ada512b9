// SPDX-License-Identifier: Apache-2.0
/** Modules are found and ordered whatever the tree looks like. Layer: test. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { afterAll, expect, test } from 'vitest'
import { modulesInOrder } from './modules.ts'

const dir = mkdtempSync(join(tmpdir(), 'netplane-modules-'))
afterAll(() => rmSync(dir, { recursive: true }))

const module = (...info: string[]): Buffer => Buffer.from(`\x7fELF\0${info.map((word) => `${word}\0`).join('')}rest`)

mkdirSync(join(dir, 'kernel/net'), { recursive: true })
writeFileSync(join(dir, 'kernel/net/vxlan.ko'), module('license=GPL', 'depends=udp_tunnel,ip6_udp_tunnel'))
writeFileSync(join(dir, 'kernel/net/udp_tunnel.ko.gz'), gzipSync(module('depends=')))
writeFileSync(join(dir, 'kernel/ip6_udp_tunnel.ko.zst'), zstdCompressSync(module('depends=udp_tunnel', 'softdep=pre: crc-a post: later')))
writeFileSync(join(dir, 'kernel/crc-a.ko'), module('depends=vxlan'))
writeFileSync(join(dir, 'kernel/unwanted.ko'), module('depends='))
writeFileSync(join(dir, 'modules.dep'), 'wrong')

test('each comes after what it needs, once, and unpacked', () => {
  const found = modulesInOrder(dir, ['vxlan', 'udp-tunnel', 'not_there'])
  expect(found.map(({ name }) => name)).toEqual(['udp_tunnel', 'crc_a', 'ip6_udp_tunnel', 'vxlan'])
  for (const { bytes } of found) expect(bytes.toString('latin1', 0, 4)).toBe('\x7fELF')
})
