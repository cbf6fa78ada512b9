// SPDX-License-Identifier: Apache-2.0
/** Pools. Layer: test. */
import { expect, test } from 'vitest'
import { parseCidr } from '#lib/base/ip.ts'
import { parseObject } from '#lib/kube/parse-core.ts'
import { pool } from '../../support/build.ts'
import type { Manifest } from '../../support/build.ts'

function parse(spec: Manifest): unknown {
  return parseObject(pool('pods', spec), { kind: 'IPPool', namespace: '', name: 'pods' })
}

test.each<[Manifest, object]>([
  [{ cidr: '10.0.0.0/16' }, { natOutgoing: false, overlay: 'Never' }],
  [
    { cidr: '10.0.0.0/16', natOutgoing: true, vxlanMode: 'CrossSubnet' },
    { natOutgoing: true, overlay: 'CrossSubnet' },
  ],
  [
    { cidr: '10.0.0.0/16', vxlanMode: 'Always', ipipMode: 'Never', disabled: true, blockSize: 26 },
    { natOutgoing: false, overlay: 'Always' },
  ],
])('%j', (spec, read) => {
  const value = { kind: 'IPPool', namespace: '', name: 'pods', cidr: parseCidr('10.0.0.0/16'), ...read }
  expect(parse(spec)).toEqual({ kind: 'ok', value, rejected: [] })
})

test('tunnels that we do not have are refused, the rest is used', () => {
  expect(parse({ cidr: '10.0.0.0/16', ipipMode: 'Always', natOutgoing: true })).toMatchObject({
    kind: 'ok',
    value: { natOutgoing: true, overlay: 'Never' },
    rejected: [{ ref: 'IPPool/pods', path: 'spec.ipipMode', reason: 'is not supported: vxlanMode is' }],
  })
})

test.each<[Manifest, string, string]>([
  [{}, 'spec.cidr', 'is missing'],
  [{ cidr: '10.0.0.0' }, 'spec.cidr', 'must be an IP prefix, like 10.0.0.0/24'],
  [{ cidr: '10.0.0.0/8', vxlanMode: 'Sometimes' }, 'spec.vxlanMode', 'must be Never or CrossSubnet or Always'],
])('%j is refused', (spec, path, reason) => {
  expect(parse(spec)).toEqual({ kind: 'rejected', rejected: [{ ref: 'IPPool/pods', path, reason }] })
})
