// SPDX-License-Identifier: Apache-2.0
/** Which changes of a component's status are told as events. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import type { Cause } from '#lib/control/rollout.ts'
import { silentLog } from '#lib/obs/log.ts'
import { StatusWriter } from '#operator/status/status-writer.ts'

/** What becomes events of one component that is Degraded by these, one after the other; undefined: by nothing. */
async function told(causes: readonly (Cause | undefined)[]): Promise<readonly string[]> {
  const { signal } = new AbortController()
  let found: ApiObject | undefined
  const events: string[] = []
  const client = {
    apply: (object: object) => {
      found = asApiObject(object)
      return Promise.resolve(found)
    },
    delete: () => Promise.resolve(undefined),
  }
  const writer = new StatusWriter({
    client,
    log: silentLog,
    now: () => '2026-11-26T08:00:00Z',
    onTransition: (_, { type, status, message }) => {
      if (type === 'Degraded' && status === 'True') events.push(message)
      return Promise.resolve()
    },
  })
  for (const cause of causes) {
    const states = new Map([['network', cause === undefined ? {} : { degraded: cause }]] as const)
    await writer.put(states, { generation: 1, found: new Map(found && [['/network', found]]), signal })
  }
  return events
}

const cause = (message: string, kind?: string): Cause => ({ reason: 'EndpointUnproven', message, ...(kind === undefined ? {} : { kind }) })

test('a message with another count is no news', async () => {
  expect(await told([cause('0 nodes'), cause('1 nodes'), cause('2 nodes')])).toEqual(['0 nodes'])
})

test('a cause that becomes known is, and another one, each once though they come in turns', async () => {
  const [refused, silent] = [cause('a: refuses', 'refused'), cause('a: silent', 'silent')]
  const more = cause('a, b: refuses', 'refused')
  expect(await told([cause('0 nodes'), refused, cause('1 nodes'), more, silent, refused, silent])).toEqual([
    '0 nodes',
    'a: refuses',
    'a: silent',
  ])
})

test('what was put right meanwhile is news again', async () => {
  const refused = cause('a: refuses', 'refused')
  expect(await told([refused, undefined, refused])).toEqual(['a: refuses', 'a: refuses'])
  expect(await told([refused, { reason: 'EndpointInvalid', message: 'no port' }, refused])).toHaveLength(3)
})
