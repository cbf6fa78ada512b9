// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'
import { ProxyHealth } from '#agent/http/proxy-health.ts'
import { keepsPodsAway, NODE_ADDRESS, NODE_ADDRESS_FAMILY, NODE_KNOWN, OwnNodeReport } from '#agent/report/own-node.ts'
import { ListLog } from '../../support/fakes/list-log.ts'

const KNOWN = { [NODE_KNOWN]: undefined, [NODE_ADDRESS]: undefined, [NODE_ADDRESS_FAMILY]: undefined }

function setup() {
  const time = { now: 0 }
  const health = new Health(() => time.now)
  const log = new ListLog()
  return { time, health, log, report: new OwnNodeReport({ health, log }) }
}

test('a node without an address is not ready, and takes pods all the same', () => {
  const { health, report } = setup()
  report.note({ ...KNOWN, [NODE_ADDRESS]: 'it has none' })
  expect(health.report().ready).toBe(false)
  expect(keepsPodsAway(health)).toEqual([])
  health.fail('programs', 'E2BIG')
  expect(keepsPodsAway(health)).toMatchObject([{ name: 'programs' }])
})

test('load balancers and rollouts hear of a node that has no address, not of one that has none of a family', () => {
  const { time, health, report } = setup()
  const proxy = new ProxyHealth({ health, wall: () => time.now, eligible: () => true })
  expect(proxy.healthy).toBe(false)
  report.note({ ...KNOWN, [NODE_ADDRESS_FAMILY]: 'it has none' })
  expect([proxy.healthy, health.report().ready]).toEqual([true, true])
  report.note({ ...KNOWN, [NODE_ADDRESS]: 'it has none' })
  time.now += 61_000
  expect(proxy.healthy).toBe(false)
})

test('what is wrong with the node is logged once, and when it is over', () => {
  const { log, report } = setup()
  report.note(KNOWN)
  report.note({ ...KNOWN, [NODE_ADDRESS]: 'it has none' })
  report.note({ ...KNOWN, [NODE_ADDRESS]: 'it has none' })
  report.note(KNOWN)
  report.note({ ...KNOWN, [NODE_KNOWN]: 'there is none' })
  expect(log.events).toEqual(['node.address-lost', 'node.address-found', 'node.lost'])
})
