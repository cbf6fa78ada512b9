// SPDX-License-Identifier: Apache-2.0
/** What the agent reports of the settings in force. Layer: test. */
import { expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'
import { ConfigReport } from '#agent/report/config.ts'
import { resolveConfig, type Resolved } from '#agent/config/resolve.ts'
import { layerFrom } from '#agent/config/layers.ts'
import { allFields } from '#agent/config/schema.ts'

function resolve(spec: Record<string, number>, previous?: Resolved): Resolved {
  return resolveConfig([layerFrom({ kind: 'FelixConfiguration', namespace: '', name: 'node.a', spec })], previous)
}

function setUp() {
  const health = new Health(() => 0)
  const lines: string[] = []
  const write = (fields: object, event: string): void => {
    lines.push(`${event} ${JSON.stringify(fields)}`)
  }
  const log = { info: write, warn: write }
  const book = new ConfigReport({ health, log })
  const page = async (): Promise<unknown> => JSON.parse((await book.pages['/config']?.())?.body ?? '')
  return { health, lines, book, page }
}

test('the origin of a setting is in log, page and counts', async () => {
  const { lines, book, page } = setUp()
  expect((await book.pages['/config']?.())?.status).toBe(503)
  book.note(resolve({ vxlanPort: 4790 }))
  expect(lines).toEqual(['configuration.applied {"field":"vxlanPort","value":4790,"from":"node"}'])
  expect(await page()).toMatchObject({
    fields: {
      vxlanPort: { value: 4790, from: 'node', takesEffect: 'at once' },
      healthPort: { value: '9099', from: 'built-in' },
      bpfMapSizeConntrack: { takesEffect: 'at the next start' },
    },
    refused: [],
  })
  expect(book.counts().get('node')).toBe(1)
  expect(book.counts().get('built-in')).toBe(allFields.length - 1)
})

test('only changes are logged; a setting that waits for a restart is a condition, and the node stays ready', () => {
  const { health, lines, book } = setUp()
  const first = resolve({ vxlanPort: 4790 })
  book.note(first)
  const second = resolve({ vxlanPort: 4790, bpfMapSizeConntrack: 4096 }, first)
  book.note(second)
  book.note(second)
  expect(lines.slice(1)).toEqual(['configuration.deferred {"fields":["bpfMapSizeConntrack"]}'])
  const { ready, conditions } = health.report()
  expect([ready, conditions[0]?.reason]).toEqual([true, "at the agent's next start: bpfMapSizeConntrack"])
  book.note(resolve({ vxlanPort: 4790 }, second))
  expect(health.report().conditions[0]?.ok).toBe(true)
})
