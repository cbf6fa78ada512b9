// SPDX-License-Identifier: Apache-2.0
/** Pools. Layer: test. */
import { expect, test } from 'vitest'
import { parseCidr } from '#lib/base/ip.ts'
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import { pool } from '../../../support/build.ts'
import type { Manifest } from '../../../support/build.ts'

function parse(spec: Manifest): unknown {
  return parseObject(pool('pods', spec), { kind: 'IPPool', namespace: '', name: 'pods' })
}

const USUAL = { blockBits: 26, assigns: 'all', nodes: { op: 'all' }, namespaces: { op: 'all' } }

test.each<[Manifest, object]>([
  [{ cidr: '10.0.0.0/16' }, { natOutgoing: false, overlay: 'Never' }],
  [
    { cidr: '10.0.0.0/16', natOutgoing: true, vxlanMode: 'CrossSubnet' },
    { natOutgoing: true, overlay: 'CrossSubnet' },
  ],
  [
    { cidr: '10.0.0.0/16', vxlanMode: 'Always', ipipMode: 'Never', disabled: true, blockSize: 24 },
    { natOutgoing: false, overlay: 'Always', assigns: 'none', blockBits: 24 },
  ],
  [{ cidr: '10.0.0.0/28' }, { natOutgoing: false, overlay: 'Never', blockBits: 28 }],
  [
    { cidr: '10.0.0.0/16', assignmentMode: 'Manual' },
    { natOutgoing: false, overlay: 'Never', assigns: 'asked' },
  ],
  [
    { cidr: '10.0.0.0/16', allowedUses: ['LoadBalancer'] },
    { natOutgoing: false, overlay: 'Never', assigns: 'none' },
  ],
  [
    { cidr: '10.0.0.0/16', nodeSelector: "rack == 'a'", namespaceSelector: 'has(team)' },
    {
      natOutgoing: false,
      overlay: 'Never',
      nodes: { op: 'equals', label: 'rack', value: 'a' },
      namespaces: { op: 'has', label: 'team' },
    },
  ],
])('%j', (spec, read) => {
  const value = { kind: 'IPPool', namespace: '', name: 'pods', cidr: parseCidr(String(spec['cidr'])), ...USUAL, ...read }
  expect(parse(spec)).toEqual({ kind: 'ok', value, rejected: [] })
})

test('tunnels that we do not have are refused, the rest is used', () => {
  expect(parse({ cidr: '10.0.0.0/16', ipipMode: 'Always', natOutgoing: true })).toMatchObject({
    kind: 'ok',
    value: { natOutgoing: true, overlay: 'Never' },
    rejected: [{ ref: 'IPPool/pods', path: 'spec.ipipMode', reason: 'is not supported: vxlanMode is' }],
  })
})

const BLOCK_SIZE = 'must be at least the prefix length of cidr, and 20..32 or 116..128'

test.each<[Manifest, string, string]>([
  [{}, 'spec.cidr', 'is missing'],
  [{ cidr: '10.0.0.0' }, 'spec.cidr', 'must be an IP prefix, like 10.0.0.0/24'],
  [{ cidr: '10.0.0.0/8', blockSize: 19 }, 'spec.blockSize', 'must be 20..128'],
  [{ cidr: '10.0.0.0/28', blockSize: 26 }, 'spec.blockSize', BLOCK_SIZE],
  [{ cidr: 'fd00::/64', blockSize: 64 }, 'spec.blockSize', BLOCK_SIZE],
  [{ cidr: '10.0.0.0/8', nodeSelector: 'rack ==' }, 'spec.nodeSelector', expect.stringMatching(/selector/)],
  [{ cidr: '10.0.0.0/8', vxlanMode: 'Sometimes' }, 'spec.vxlanMode', 'must be Never or CrossSubnet or Always'],
])('%j is refused', (spec, path, reason) => {
  expect(parse(spec)).toEqual({ kind: 'rejected', rejected: [{ ref: 'IPPool/pods', path, reason }] })
})
