// SPDX-License-Identifier: Apache-2.0
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { endRun, holderOf, nameOf, Waiting } from './lock.ts'

const PATIENCE = { waitMs: 1000, goneMs: 100 }

/** What is done at each of these times. */
function steps(...looks: readonly (readonly [now: number, name: string, lives: boolean])[]): readonly string[] {
  const waiting = new Waiting(PATIENCE)
  return looks.map(([now, name, lives]) => {
    const { step, isNew } = waiting.next({ name, lives }, now)
    return isNew ? `new: ${step}` : step
  })
}

test('a run that lives is waited for, and then ended', () => {
  expect(steps([0, 'a', true], [999, 'a', true], [1000, 'a', true])).toEqual(['new: wait', 'wait', 'end'])
})

test('a run that had its turn while this one waited is waited for as well', () => {
  expect(steps([0, 'a', true], [990, 'b', true], [1500, 'b', true], [1990, 'b', true])).toEqual(['new: wait', 'new: wait', 'wait', 'end'])
})

test('a lock without a name is waited for until it has one', () => {
  expect(steps([0, '', false], [99, '', false], [150, 'a', true])).toEqual(['new: wait', 'wait', 'new: wait'])
  expect(steps([0, 'gone', false], [99, 'gone', false], [100, 'gone', false])).toEqual(['new: wait', 'wait', 'remove'])
})

test('who has the lock is told apart from a later process with its number', () => {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-lock-'))
  const lock = join(folder, 'lock')
  try {
    expect(holderOf(lock)).toEqual({ name: '', pid: 0, lives: false })
    writeFileSync(lock, nameOf(process.pid))
    expect(holderOf(lock)).toMatchObject({ pid: process.pid, lives: true })
    writeFileSync(lock, `process ${process.pid}, which began at 1`)
    expect(holderOf(lock)).toMatchObject({ pid: process.pid, lives: false })
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('a run that has ended by itself meanwhile is no failure', () => {
  const { pid } = spawnSync('true')
  expect(() => {
    endRun({ pid })
  }).not.toThrow()
})
