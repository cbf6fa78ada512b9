// SPDX-License-Identifier: Apache-2.0
/** Which endpoints get new flows. Layer: test. */
import { describe, expect, test } from 'vitest'
import { formatAddr } from '#lib/base/ip.ts'
import type { EndpointSlice } from '#lib/model/endpoint-slice.ts'
import { chooseEndpoints } from '#agent/compile/services/endpoints.ts'
import type { Target } from '#agent/compile/services/endpoints.ts'
import { model, slice } from '../../../support/build.ts'
import type { EndpointSpec } from '../../../support/build.ts'

/** Last numbers of the addresses: '1 2 | 1 | 1 2 3' are those for policy Cluster, for Local, and all that serve. */
function choose(
  slices: readonly (readonly EndpointSpec[])[],
  of: { readonly zone?: string; readonly publish?: boolean; readonly versions?: readonly (string | undefined)[] } = {},
): string {
  const models = slices.map((endpoints, at) => {
    const resourceVersion = of.versions?.[at]
    return model(slice(`web-${at}`, { endpoints, ...(resourceVersion === undefined ? {} : { resourceVersion }) }))
  })
  const chosen = chooseEndpoints(
    {
      service: { publishNotReadyAddresses: of.publish ?? false },
      port: { name: '', protocol: 'TCP' },
      family: 'IPv4',
      slices: models.filter((object): object is EndpointSlice => object.kind === 'EndpointSlice'),
    },
    { node: 'n1', zone: of.zone },
  )
  const text = (targets: readonly Target[]): string => targets.map(({ addr }) => formatAddr(addr).split('.').at(-1)).join(' ')
  return [chosen.cluster, chosen.local, chosen.serving].map(text).join(' | ')
}

const here = (last: number, more: object = {}): EndpointSpec => ({ addr: `10.0.0.${last}`, node: 'n1', ...more })
const there = (last: number, more: object = {}): EndpointSpec => ({ addr: `10.0.0.${last}`, node: 'n2', ...more })
const leaving = { ready: false, serving: true, terminating: true }
const gone = { ready: false, serving: false, terminating: true }
const unready = { ready: false }

describe('readiness', () => {
  test.each<[string, readonly EndpointSpec[], string]>([
    ['ready ones', [here(1), there(2), here(3, unready)], '1 2 | 1 | 1 2'],
    ['unknown counts as ready', ['10.0.0.1'], '1 |  | 1'],
    ['those that are going are out while others are ready', [here(1, leaving), there(2)], '2 | 1 | 1 2'],
    ['with none ready, those that still serve', [here(1, leaving), there(2, leaving), there(3, gone)], '1 2 | 1 | 1 2'],
    ['each list falls back for itself', [here(1), here(2, leaving), there(3, leaving)], '1 | 1 | 1 2 3'],
    ['a local fallback while others elsewhere are ready', [here(1, leaving), there(2), there(3)], '2 3 | 1 | 1 2 3'],
    ['nothing serves', [here(1, gone), there(2, unready)], ' |  | '],
    ['serving, but neither ready nor going: no fallback', [here(1, { ready: false, serving: true })], ' |  | 1'],
    ['nothing at all', [], ' |  | '],
  ])('%s', (_, endpoints, wanted) => {
    expect(choose([endpoints])).toBe(wanted)
  })

  test('all are ready where the service says so', () => {
    expect(choose([[here(1, unready), there(2, gone), here(3)]], { publish: true })).toBe('1 2 3 | 1 3 | 1 2 3')
  })
})

describe('the same endpoint in two slices', () => {
  test.each<[string, object, object, string]>([
    ['ready in one', unready, {}, '1 | 1 | 1'],
    ['ready in the other', {}, leaving, '1 | 1 | 1'],
    ['going in one', unready, leaving, '1 | 1 | 1'],
    ['twice ready', {}, {}, '1 | 1 | 1'],
  ])('%s', (...[, first, second, wanted]) => {
    expect(choose([[here(1, first)], [here(1, second)]])).toBe(wanted)
  })

  test.each<[string, object, readonly (string | undefined)[], string]>([
    ['not ready any more', unready, ['9', '10'], ' |  | '],
    ['going', leaving, ['9', '10'], '1 | 1 | 1'],
    ['ready again, of an older write', unready, ['10', '9'], '1 | 1 | 1'],
    ['on another node', { node: 'n2' }, ['9', '10'], '1 |  | 1'],
    ['not ready, beside a manifest', unready, [undefined, '10'], ' |  | '],
    ['not ready, in a manifest beside a slice of the server', unready, ['10', undefined], '1 | 1 | 1'],
    ['not ready, of a version that is no number', unready, ['9', 'a'], '1 | 1 | 1'],
    ['of the same write, the better', unready, ['9', '9'], '1 | 1 | 1'],
  ])('the slice that was written later counts: %s', (...[, second, versions, wanted]) => {
    expect(choose([[here(1)], [here(1, second)]], { versions })).toBe(wanted)
    expect(choose([[here(1, second)], [here(1)]], { versions: versions.toReversed() })).toBe(wanted)
  })
})

describe('an address of two pods', () => {
  const [dying, living] = [{ pod: 'a' }, { pod: 'b' }]
  test.each<[string, object, object, string]>([
    ['is that of the ready one, though the other’s slice was written later', { ...dying, ...gone }, living, '1 | 1 | 1'],
    ['is that of the one on its node', { ...dying, ...gone }, { ...living, node: 'n2' }, '1 |  | 1'],
    ['serves as long as one of them does', { ...dying, ...leaving }, { ...living, ...gone }, '1 | 1 | 1'],
    [
      'is not that of a pod which is going while the other one stays',
      { ...dying, ...leaving },
      { ...living, ready: false, serving: true },
      ' |  | 1',
    ],
    ['is ready where a slice does not say whose it is', leaving, living, '1 | 1 | 1'],
    ['of two that are ready is that of the slice that was written last', { ...dying, node: 'n2' }, living, '1 |  | 1'],
  ])('%s', (...[, later, earlier, wanted]) => {
    expect(choose([[here(1, later)], [here(1, earlier)]], { versions: ['10', '9'] })).toBe(wanted)
    expect(choose([[here(1, earlier)], [here(1, later)]], { versions: ['9', '10'] })).toBe(wanted)
  })

  test.each<[string, object, object]>([
    ['stays', { terminating: true }, { serving: false }],
    ['serves', { serving: false }, { serving: true }],
  ])('is that of the pod which %s, where the service has all count as ready', (_, later, earlier) => {
    const [there1, here1] = [
      here(1, { ...dying, node: 'n2', ready: true, serving: true, ...later }),
      here(1, { ...living, ready: true, ...earlier }),
    ]
    expect(choose([[there1], [here1]], { versions: ['10', '9'], publish: true })).toBe('1 | 1 | 1')
    expect(choose([[here1], [there1]], { versions: ['9', '10'], publish: true })).toBe('1 | 1 | 1')
  })

  test('is first asked about pod by pod: what a later slice says of the same pod goes before what an earlier one said', () => {
    const slices = [[here(1, living)], [here(1, { ...dying, ...leaving })], [here(1, { ...living, ...gone })]]
    const orders = [
      [0, 1, 2],
      [2, 1, 0],
      [1, 0, 2],
      [2, 0, 1],
    ]
    const versions = ['7', '8', '9']
    for (const order of orders)
      expect(
        choose(
          order.map((at) => slices[at] ?? []),
          { versions: order.map((at) => versions[at]) },
        ),
      ).toBe('1 | 1 | 1')
  })

  test('is published by the living one as well', () => {
    const [unpublished, published] = [{ ...dying, ...gone, node: 'n2' }, living]
    expect(choose([[here(1, unpublished)], [here(1, published)]], { versions: ['10', '9'], publish: true })).toBe('1 | 1 | 1')
  })
})

describe('hints', () => {
  const east = { forZones: ['east'] }
  const west = { forZones: ['west'] }
  test.each<[string, readonly EndpointSpec[], string | undefined, string]>([
    ['this zone’s', [there(1, east), there(2, west)], 'east', '1 |  | 1 2'],
    ['for several zones', [there(1, { forZones: ['west', 'east'] }), there(2, west)], 'east', '1 |  | 1 2'],
    ['one has none: all', [there(1, east), there(2)], 'east', '1 2 |  | 1 2'],
    ['one that is not ready has none', [there(1, east), there(2, west), there(3, unready)], 'east', '1 |  | 1 2'],
    ['none for this zone: all', [there(1, west), there(2, west)], 'east', '1 2 |  | 1 2'],
    ['our zone is not known: all', [there(1, east), there(2, west)], undefined, '1 2 |  | 1 2'],
    [
      'this node’s before this zone’s',
      [here(1, { forNodes: ['n1'], ...east }), there(2, { forNodes: ['n2'], ...east })],
      'east',
      '1 | 1 | 1 2',
    ],
    [
      'none for this node: this zone’s',
      [there(1, { forNodes: ['n2'], ...east }), there(2, { forNodes: ['n3'], ...west })],
      'east',
      '1 |  | 1 2',
    ],
    ['nodes only, none for us: all', [there(1, { forNodes: ['n2'] }), there(2, { forNodes: ['n3'] })], 'east', '1 2 |  | 1 2'],
    ['the local list does not ask for them', [here(1, west), here(2, east)], 'east', '2 | 1 2 | 1 2'],
    ['those that are going are not asked for theirs', [there(1, { ...leaving, ...west }), there(2, leaving)], 'east', '1 2 |  | 1 2'],
  ])('%s', (...[, endpoints, zone, wanted]) => {
    expect(choose([endpoints], zone === undefined ? {} : { zone })).toBe(wanted)
  })
})
