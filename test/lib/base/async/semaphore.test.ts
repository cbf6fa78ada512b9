// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { expect, test } from 'vitest'
import { KeyedMutex } from '#lib/base/async/semaphore.ts'

test('work of one key waits for what began before, however that ends; work of another does not', async () => {
  const mutex = new KeyedMutex()
  const first = Promise.withResolvers<string>()
  const ended: string[] = []
  const run = (key: string, name: string, work: Promise<unknown>): Promise<unknown> =>
    mutex
      .run(key, async () => {
        ended.push(`${name} begins`)
        await work
      })
      .catch(() => undefined)
  const all = [run('a', 'first', first.promise), run('a', 'second', Promise.resolve()), run('b', 'other', Promise.resolve())]
  await all[2]
  expect(ended).toEqual(['first begins', 'other begins'])
  first.reject(new Error('no'))
  await Promise.all(all)
  expect(ended).toEqual(['first begins', 'other begins', 'second begins'])
})
