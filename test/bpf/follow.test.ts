// SPDX-License-Identifier: Apache-2.0
/** What verifiers of some kernels cannot follow is in none of our objects, whichever kernel this is. Layer: test. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { arch, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { BpfObject } from '#native'
import { functionsOf } from './code.ts'
import { findUnfollowed } from './follow.ts'

const TOP = resolve(import.meta.dirname, '../..')
const folder = mkdtempSync(join(tmpdir(), 'netplane-follow-'))
afterAll(() => rmSync(folder, { recursive: true }))

const objects = readdirSync(join(TOP, 'bpf')).filter((name) => name.endsWith('.bpf.o'))

test('all BPF objects are looked at', () => {
  expect(objects.length).toBeGreaterThanOrEqual(5)
  const functions = objects.flatMap((name) => functionsOf(join(TOP, 'bpf', name)))
  expect(functions.map(({ name }) => name)).toEqual(expect.arrayContaining(['slow', 'syn_options', 'flow_track', 'connect6', 'untracked']))
})

test.each(objects)('%s has nothing that an old or a new verifier cannot follow', (name) => {
  const found = functionsOf(join(TOP, 'bpf', name)).flatMap((code) =>
    findUnfollowed(code).map(({ at, what }) => `${code.name}, instruction ${at}: ${what}`),
  )
  expect(found).toEqual([])
})

describe('what is looked for', () => {
  const object = join(folder, 'unfollowed.bpf.o')
  const include = ['-I', join(TOP, 'bpf/include'), '-I', `/usr/include/${arch() === 'x64' ? 'x86_64' : 'aarch64'}-linux-gnu`]
  const source = join(import.meta.dirname, 'fixtures/unfollowed.bpf.c')
  execFileSync('clang-19', [
    '-g',
    '-O2',
    '-fno-strict-aliasing',
    '-target',
    'bpf',
    '-mcpu=v2',
    '-Wno-address-of-packed-member',
    '-DNP_FLOOR',
    ...include,
    '-c',
    source,
    '-o',
    object,
  ])

  test.each(functionsOf(object).map(({ name, instructions }) => [name, instructions] as const))('%s', (name, instructions) => {
    const found = new Set(findUnfollowed({ instructions }).map(({ what }) => what))
    const wanted = name.startsWith('good_')
      ? []
      : [
          name.startsWith('bad_lower_first')
            ? 'a lower bound asked for before the upper one'
            : 'an address made with a number that nothing bounds',
        ]
    expect([...found]).toEqual(wanted)
  })
})

test('programs of sockets, which processes interrupt, have no memory of their CPU to work in', () => {
  const PERCPU_ARRAY = 6
  const object = BpfObject.open(join(TOP, 'bpf/connect.bpf.o'))
  const found = object.maps().filter(({ type }) => type === PERCPU_ARRAY)
  object.close()
  expect(found.map(({ name }) => name)).toEqual(['np_counters'])
})
