// SPDX-License-Identifier: Apache-2.0
/** Flows as they are written. Layer: test. */
import { describe, expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { packetsOf } from '../../cli/explain/manifests/flows.ts'
import { readEnd, readFlow, readProtocol } from '../../cli/explain/query.ts'
import { clusterOf } from '../../cli/explain/manifests/cluster.ts'
import { model, pod } from '../support/build.ts'

describe('readEnd', () => {
  test.each([
    ['shop/web', { kind: 'pod', namespace: 'shop', name: 'web', port: undefined }],
    ['shop/web:http', { kind: 'pod', namespace: 'shop', name: 'web', port: 'http' }],
    ['pod/node/web:80', { kind: 'pod', namespace: 'node', name: 'web', port: '80' }],
    ['svc/shop/db:sql', { kind: 'service', namespace: 'shop', name: 'db', port: 'sql' }],
    ['node/n1:30032', { kind: 'node', name: 'n1', port: '30032' }],
    ['10.0.0.1:80', { kind: 'address', addr: parseAddr('10.0.0.1'), port: '80' }],
    ['fd00::1', { kind: 'address', addr: parseAddr('fd00::1'), port: undefined }],
    ['[fd00::1]:80', { kind: 'address', addr: parseAddr('fd00::1'), port: '80' }],
    ['[fd00::1]', { kind: 'address', addr: parseAddr('fd00::1'), port: undefined }],
  ])('%s', (text, end) => {
    expect(readEnd(text)).toEqual({ text, ...end })
  })

  test.each(['web', 'a/b/c', 'shop/', '10.0.0', '[fd00::1]80', 'shop/web:0', 'shop/web:70000', 'shop/web:a_b', '[nothing]:1'])(
    '%s is none',
    (text) => {
      expect(() => readEnd(text)).toThrow(/is no (end of a flow|port)/)
    },
  )
})

describe('readFlow', () => {
  test('a source port that is written at the first end', () => {
    expect(readFlow('udp 10.0.0.1:4000 > 10.96.0.10:53')).toMatchObject({ protocol: 'udp', sourcePort: 4000, to: { port: '53' } })
    expect(readFlow('  icmp/3  a/b>c/d ')).toMatchObject({ protocol: 'icmp', icmp: { type: 3, code: 0 }, sourcePort: undefined })
  })

  test.each(['tcp a/b c/d:1', 'tcp a/b >', 'a/b > c/d', 'tcp a/b:http > c/d:80'])('%s is none', (text) => {
    expect(() => readFlow(text)).toThrow()
  })
})

test.each(['esp', 'tcp/1', 'icmp/256', 'icmp/1/2/3', ''])('protocol "%s" is none', (text) => {
  expect(() => readProtocol(text)).toThrow('is none of tcp')
})

test('a pod has the packets of addresses that are its own; for one without any the error names the owner of its address', () => {
  const both = ['10.0.0.5', 'fd00::5']
  const manifests = [
    pod('old', { ips: both, terminating: true }),
    pod('new', { ips: ['10.0.0.5'] }),
    pod('gone', { ips: ['10.0.0.5'], terminating: true }),
    pod('asker', { ips: ['10.0.0.9', 'fd00::9'] }),
  ]
  const world = clusterOf(manifests.map((manifest) => ({ kind: 'upsert', object: model(manifest) })))
  expect(packetsOf(world, readFlow('tcp default/asker > default/old:80')).map(({ dst }) => dst)).toEqual([parseAddr('fd00::5')])
  expect(packetsOf(world, readFlow('tcp default/asker > default/new:80')).map(({ dst }) => dst)).toEqual([parseAddr('10.0.0.5')])
  expect(() => packetsOf(world, readFlow('tcp default/asker > default/gone:80'))).toThrow('has no address: 10.0.0.5 is that of default/new')
})
