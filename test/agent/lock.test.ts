// SPDX-License-Identifier: Apache-2.0
import { once } from 'node:events'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { lockHolder, takeLock } from '#agent/lock.ts'

const name = `\0netplane-test-${process.pid}`

test('the lock is one agent’s; others hear whose, and get it afterwards', async () => {
  expect(await lockHolder(name)).toBeUndefined()
  const first = await takeLock({ line: 'agent of n1, pid 1', name })
  expect(first.kind).toBe('held')
  expect(await takeLock({ line: 'agent of n1, pid 2', name })).toEqual({ kind: 'taken', by: 'agent of n1, pid 1' })
  expect(await lockHolder(name)).toBe('agent of n1, pid 1')
  const idle = connect({ path: name, allowHalfOpen: true }).resume()
  await once(idle, 'end')
  if (first.kind === 'held') await first.lock[Symbol.asyncDispose]()
  const second = await takeLock({ line: 'agent of n1, pid 2', name })
  expect(second.kind).toBe('held')
  if (second.kind === 'held') await second.lock[Symbol.asyncDispose]()
  idle.destroy()
})
