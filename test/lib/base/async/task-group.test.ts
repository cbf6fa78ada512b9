// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { aborted, runTaskGroup } from '#lib/base/async/task-group.ts'

test('all end with the signal', async () => {
  const stop = new AbortController()
  const ended: string[] = []
  const task = (name: string) => async (signal: AbortSignal) => {
    await aborted(signal)
    ended.push(name)
  }
  const all = runTaskGroup(stop.signal, [task('a'), task('b')])
  stop.abort()
  await all
  expect(ended).toEqual(['a', 'b'])
})

test("a task that fails ends the others, and its error is the group's", async () => {
  const ended: string[] = []
  const all = runTaskGroup(new AbortController().signal, [
    async (signal) => {
      await aborted(signal)
      ended.push('other')
    },
    () => Promise.reject(new Error('defect')),
  ])
  await expect(all).rejects.toThrow('defect')
  expect(ended).toEqual(['other'])
})

test('what is aborted already is not waited for', async () => {
  await aborted(AbortSignal.abort())
})
