// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { DeviceReport } from '#agent/dataplane/host/device-report.ts'
import type { Decision } from '#agent/dataplane/host/devices.ts'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import { anInterface } from '../../../support/interfaces.ts'

function decision(name: string, use: Decision['use'], reason: string): Decision {
  return { iface: anInterface({ index: 1, name }), use, reason, vital: false }
}

test('each decision is logged when it is made, and a node without its device is not ready', () => {
  const health = new Health(() => 0)
  const said: string[] = []
  const note = (level: string) => (fields: object, event?: string) => said.push(`${level} ${event ?? ''} ${JSON.stringify(fields)}`)
  const log = { ...silentLog, info: note('info'), warn: note('warn'), debug: () => undefined }
  const book = new DeviceReport({ log, health })
  const told = (...decisions: readonly Decision[]): string[] => {
    book.note(decisions)
    return said.splice(0)
  }
  const eth0 = decision('eth0', 'host', 'a default route leaves by it')
  expect(told(eth0, decision('npl1', 'workload', 'pod default/a'))).toEqual([
    'info device.selected {"device":"eth0","reason":"a default route leaves by it"}',
  ])
  expect(told(eth0)).toEqual([])
  expect(book.list().map(({ iface }) => iface.name)).toEqual(['eth0'])
  expect(told(decision('eth0', 'none', 'part of br0'), decision('wg0', 'refused', 'not Ethernet'))).toEqual([
    'info device.released {"device":"eth0","reason":"part of br0"}',
    'warn device.rejected {"device":"wg0","reason":"not Ethernet"}',
  ])
  expect(health.report().ready).toBe(true)
  told({ ...decision('eth0.7', 'refused', 'tagged VLAN'), vital: true })
  expect(health.report()).toMatchObject({ ready: false, conditions: [{ reason: 'eth0.7: tagged VLAN' }] })
  expect(told(eth0)).toEqual(['info device.selected {"device":"eth0","reason":"a default route leaves by it"}'])
  expect(told()).toEqual(['info device.released {"device":"eth0","reason":"is gone"}'])
  expect(health.report().ready).toBe(true)
})
