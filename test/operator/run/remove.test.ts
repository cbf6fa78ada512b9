// SPDX-License-Identifier: Apache-2.0
/** netplane-operator remove: the Installation goes, or what keeps it is told. Layer: test. */
import { expect, test } from 'vitest'
import { ApiError, UnreachableError } from '#lib/api/errors.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { removeInstallation } from '#operator/run/remove.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'

/** '': as a server that does not know the group */
type Answer = Readonly<Record<string, unknown>> | 'NotFound' | '' | 'Forbidden' | 'Unreachable'

/** The server's answers one after the other, the last for ever; `deleted` counts. */
async function run(
  answers: readonly Answer[],
  timeoutMs = 2000,
): Promise<{ gone: boolean; text: string; printed: string[]; deleted: number }> {
  const clock = new FakeClock()
  const left = [...answers]
  const result = { printed: [] as string[], deleted: 0 }
  const client = {
    get: (): Promise<ApiObject> => {
      const answer = left.length > 1 ? left.shift() : left[0]
      if (answer === 'Unreachable') return Promise.reject(new UnreachableError('no answer in time'))
      if (typeof answer === 'string')
        return Promise.reject(new ApiError({ status: answer === 'Forbidden' ? 403 : 404, reason: answer, message: answer }))
      return Promise.resolve(
        asApiObject({ apiVersion: 'operator.netplane.io/v1', kind: 'Installation', metadata: { name: 'default' }, ...answer }),
      )
    },
    delete: (): Promise<void> => {
      result.deleted++
      return Promise.resolve()
    },
  }
  const pump = setInterval(() => {
    clock.advance(500)
  }, 1)
  const print = (text: string): void => {
    result.printed.push(text)
  }
  try {
    const { isGone: gone, text } = await removeInstallation({ client, clock, timeoutMs, print })
    return { ...result, gone, text }
  } finally {
    clearInterval(pump)
  }
}

const DELETED = { name: 'default', deletionTimestamp: '2026-11-26T00:00:00Z' }

test('it is deleted once, and waited for', async () => {
  expect(await run([{}, { metadata: DELETED }, { metadata: DELETED }, 'NotFound'])).toMatchObject({
    ...{ gone: true, deleted: 1, text: 'Installation default is gone' },
  })
})

test('where there is none, or no definition of it, that is told', async () => {
  const text = 'there is no Installation default: nothing is removed'
  for (const answer of ['NotFound', ''] as const) expect(await run([answer])).toEqual({ gone: true, text, deleted: 0, printed: [] })
})

test('what keeps it is told once, until the time is up', async () => {
  const metadata = { ...DELETED, finalizers: ['operator.netplane.io/cleanup'] }
  const conditions = [
    { type: 'Available', status: 'True', message: 'all nodes' },
    { type: 'Progressing', status: 'True', message: 'cleaning n1, n2' },
    { type: 'Degraded', status: 'False', message: '' },
  ]
  const { gone, text, printed } = await run([{ metadata, status: { conditions } }])
  expect({ gone, text }).toEqual({ gone: false, text: 'Installation default is still there after 2 s' })
  expect(printed).toEqual(['Installation default is being deleted; finalizers operator.netplane.io/cleanup; Progressing: cleaning n1, n2'])
})

test('a server that cannot be asked is asked again, one that refuses is not', async () => {
  expect(await run(['Unreachable', {}, 'NotFound'])).toMatchObject({ gone: true, deleted: 1 })
  await expect(run(['Forbidden'])).rejects.toThrow('Forbidden')
})
