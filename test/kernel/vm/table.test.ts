// SPDX-License-Identifier: Apache-2.0
/** kernels.json promises what the runs need; the command line is understood. Layer: test. */
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { hostArch } from '../../../testkit/base/arch.ts'
import { parseOptions } from './options.ts'
import { readTable } from './table.ts'

const table = readTable()

test('the kernels we promise to try are there, one by virtme-ng, one of the other architecture', () => {
  const rows = table.kernels.map(({ name, arch, runner }) => `${name} ${arch} ${runner}`)
  expect(rows).toContain('5.10-amd64 amd64 direct')
  expect(rows).toContain('6.1-amd64 amd64 virtme-ng')
  expect(rows).toContain('5.10-arm64 arm64 direct')
  expect(new Set(rows).size).toBe(rows.length)
})

test('CI boots the oldest kernel; the rest is for `make kernels`', () => {
  const booted = [...table.images, ...table.kernels].flatMap(({ name, gate }) => (gate ? [name] : []))
  expect(booted).toEqual(['el8-4.18.0-193-amd64'])
  const minors = table.kernels.filter(({ gate }) => !gate).map(({ name }) => name.replace(/-amd64$/, ''))
  expect(minors).toEqual(['5.10', '6.1', '6.12', '7.3', '5.10-arm64', '6.16', '6.17', '6.18', '6.19', '7.0', '7.1', '7.2', '7.3-rt'])
})

test('make kernels runs the demo on the oldest kernel', () => {
  expect([...table.images, ...table.kernels].filter(({ demo }) => demo).map(({ name }) => name)).toEqual(['el8-4.18.0-193-amd64'])
})

test("make kernels runs the preflight's containers on a kernel with tagged VLANs and IPVS, and on one that is refused", () => {
  const rows = [...table.images, ...table.kernels].filter(({ preflight }) => preflight)
  expect(rows.map(({ name }) => name)).toEqual(['el8-4.18.0-147-amd64', '5.10-amd64', '7.3-rt-amd64'])
  expect(table.kernels.find(({ preflight }) => preflight)?.modules).toEqual(expect.arrayContaining(['8021q', 'ip_vs']))
  // no registry has a kernel below the floor: its image need not be there
  expect(rows.filter(({ isSupported }) => !isSupported).map(({ name }) => name)).toEqual(['el8-4.18.0-147-amd64'])
})

test('every architecture has its tools, and all is pinned', () => {
  for (const { arch } of table.kernels)
    expect(table.userland.filter((tool) => tool.arch === arch).map((tool) => tool.package)).toContain('busybox-static')
  const pins = [...table.kernels.flatMap(({ pins }) => pins), ...table.images, ...table.userland, ...table.sysroot]
  for (const pin of pins) expect(pin.sha256).toMatch(/^[0-9a-f]{64}$/)
})

test.each([
  [[], { kind: 'table', names: [], timeouts: { tests: 900_000, demo: 2_400_000 } }],
  [['5.10-amd64', '--timeout', '60'], { kind: 'table', names: ['5.10-amd64'], timeouts: { tests: 60_000, demo: 60_000 } }],
  [['--fetch'], { kind: 'fetch', names: [] }],
  [['--demo', '5.4-amd64'], { kind: 'table', names: ['5.4-amd64'], only: 'demo' }],
  [['--preflight'], { kind: 'table', names: [], only: 'preflight' }],
  [['--all'], { kind: 'table', names: [], all: true, images: resolve('/top', process.env['KERNELS'] ?? '../shared/kernels') }],
  [['--kernel', 'k'], { kind: 'given', kernel: { image: 'k', arch: hostArch() } }],
  [['--kernel', 'k', '--modules', 'm', '--arch', 'aarch64'], { kind: 'given', kernel: { image: 'k', arch: 'arm64', modulesDir: 'm' } }],
])('%j', (args, wanted) => {
  expect(parseOptions(args, '/top')).toMatchObject({
    ...wanted,
    payloads: { tests: '/top/test/kernel/vm/payload/tests.ts', demo: '/top/test/kernel/vm/payload/demo.ts' },
  })
})

test.each([
  [['--modules', 'm']],
  [['--kernel', 'k', 'name']],
  [['--timeout', 'soon']],
  [['--all', '--kernel', 'k']],
  [['--arch', 'vax', '--kernel', 'k']],
  [['--demo', '--payload', 'p.ts']],
  [['--demo', '--fetch']],
  [['--demo', '--preflight']],
  [['--nonsense']],
])('%j makes no sense', (args) => {
  expect(() => parseOptions(args, '/top')).toThrow()
})

test('--help asks for the usage', () => {
  expect(parseOptions(['--help'], '/top')).toBeUndefined()
})
