// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { MapError } from '#lib/base/errors.ts'
import { createLog, type LogLevel } from '#lib/obs/log.ts'

function logged(level: LogLevel = 'info') {
  const lines: string[] = []
  const log = createLog({ level, fields: { node: 'n1' }, sink: { write: (line) => lines.push(line) } })
  return { log, parsed: () => lines.map((line): unknown => JSON.parse(line)) }
}

describe('the log', () => {
  test('is one JSON line an event, with level, time and what is common to all', () => {
    const { log, parsed } = logged()
    log.info({ map: 'np_addrs', added: 3 }, 'map.applied')
    expect(parsed()).toEqual([
      { level: 'info', time: expect.stringMatching(/^\d{4}-.*Z$/) as string, node: 'n1', map: 'np_addrs', added: 3, event: 'map.applied' },
    ])
  })

  test('says only what is as grave as its level, children included, also when that changes', () => {
    const { log, parsed } = logged('warn')
    const child = log.child({ part: 'x' })
    child.info({}, 'one')
    child.warn({}, 'two')
    log.setLevel('debug')
    child.debug({}, 'three')
    log.setLevel('fatal')
    log.error({}, 'four')
    log.fatal({}, 'five')
    expect(parsed()).toMatchObject([{ event: 'two', part: 'x' }, { event: 'three' }, { event: 'five', level: 'fatal' }])
  })

  test('an error has its code, the place it comes from and its cause', () => {
    const { log, parsed } = logged()
    log.error(
      { error: new MapError({ map: 'np_ct', op: 'create', cause: Object.assign(new Error('no memory'), { code: 'ENOMEM' }) }) },
      'failed',
    )
    expect(parsed()).toMatchObject([
      {
        error: {
          message: 'map np_ct: create: no memory',
          code: 'MAP',
          at: expect.stringContaining('log.test.ts') as string,
          cause: { message: 'no memory', code: 'ENOMEM' },
        },
      },
    ])
  })

  test('takes anything that was thrown for an error', () => {
    const { log, parsed } = logged()
    log.error({ error: 'just text' }, 'failed')
    expect(parsed()).toMatchObject([{ error: { message: 'just text' } }])
  })
})
