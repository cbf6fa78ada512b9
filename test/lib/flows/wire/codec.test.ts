// SPDX-License-Identifier: Apache-2.0
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { FlowUpdate } from '#lib/flows/flow.ts'
import { receivedUpdate, updateMessage, type Received } from '#lib/flows/wire/codec.ts'
import { FlowUpdateSchema } from '#lib/flows/wire/goldmane_pb.ts'
import { update } from '../arbitrary.ts'
import { field, hex, UPDATE_OF_332 } from './bytes.ts'

function received(bytes: Uint8Array): Received {
  return receivedUpdate(fromBinary(FlowUpdateSchema, bytes))
}

/** Of a message that has what it must have, and these fields of its flow. */
function receivedOf(flow: { readonly packetsIn?: bigint; readonly bytesOut?: bigint }): Received {
  return receivedUpdate(create(FlowUpdateSchema, { flow: { Key: { reporter: 1, action: 1 }, ...flow } }))
}

const END = { labels: [], addresses: [], pods: [], node: '', owner: '' }

describe('bytes of other programs', () => {
  test('an update of 3.32: hits in their order, kinds of older versions known, those to come left out', () => {
    expect(received(UPDATE_OF_332)).toEqual({
      kind: 'update',
      window: {
        key: {
          source: { type: 'WorkloadEndpoint', name: 'web-*', namespace: 'shop' },
          dest: { type: 'WorkloadEndpoint', name: 'db', namespace: 'data' },
          destPort: 5432,
          service: { namespace: 'data', name: 'db', portName: 'pg', port: 5433 },
          protocol: 'tcp',
          reporter: 'Dst',
          action: 'Deny',
          reason: '',
          enforced: [
            { kind: 'GlobalNetworkPolicy', tier: 'sec', namespace: '', name: 'g', action: 'Pass', rule: 2 },
            {
              kind: 'EndOfTier',
              tier: 'default',
              namespace: '',
              name: '',
              action: 'Deny',
              rule: -1,
              trigger: { kind: 'NetworkPolicy', tier: 'default', namespace: 'data', name: 'db-in' },
            },
          ],
          pending: [{ kind: 'AdminNetworkPolicy', tier: '', namespace: '', name: 'anp', action: 'Allow', rule: 0 }],
        },
        start: 123456789,
        counts: { packetsIn: 1, packetsOut: 2, bytesIn: 300, bytesOut: 4, started: 5, completed: 6, live: 7 },
        source: { ...END, labels: ['a=b', 'c=d'] },
        dest: { ...END, labels: ['e=f'] },
        sourcePorts: [],
      },
      origin: undefined,
      lost: 0,
      unknownHits: 1,
    } satisfies Received)
  })

  test.each([
    ['nothing', hex(''), 'flow is missing'],
    ['no key', field('0a', hex('10 0f')), 'flow.Key is missing'],
    ['no reporter', field('0a', field('0a', hex('70 01'))), 'flow.Key.reporter is 0'],
    ['a reporter to come', field('0a', field('0a', hex('68 03 70 01'))), 'flow.Key.reporter is 3'],
    ['no action', field('0a', field('0a', hex('68 01'))), 'flow.Key.action is 0'],
    ['a port beyond 65535', field('0a', field('0a', hex('38 80 80 04 68 01 70 01'))), 'flow.Key has port 65536'],
    ['one of a service', field('0a', field('0a', hex('58 80 80 04 68 01 70 01'))), 'flow.Key has port 65536'],
    ['a verdict that only passes', field('0a', field('0a', hex('68 01 70 03'))), 'flow.Key.action is 3'],
  ])('%s cannot be read, and says why', (_title, bytes, reason) => {
    expect(received(bytes)).toEqual({ kind: 'unreadable', reason })
  })

  test('without namespaces, types and a service an end is a network of no namespace', () => {
    const got = received(field('0a', field('0a', hex('68 01 70 01'))))
    const network = { type: 'Network', name: '', namespace: '-' }
    expect(got).toMatchObject({ window: { key: { source: network, dest: network, service: undefined } } })
  })

  test.each([
    ['of negative counts 0 is left', { packetsIn: -5n }, { packetsIn: 0 }],
    ['a count beyond the safe ones is the largest of those', { bytesOut: 2n ** 62n }, { bytesOut: Number.MAX_SAFE_INTEGER }],
  ])('%s', (_title, sent, counts) => {
    expect(receivedOf(sent)).toMatchObject({ window: { counts } })
  })

  test('whatever bytes come, they are an update, unreadable, or no message at all', () => {
    const cut = fc.tuple(fc.nat({ max: UPDATE_OF_332.length - 1 }), fc.nat({ max: 255 }))
    fc.assert(
      fc.property(cut, ([at, byte]) => {
        const bytes = UPDATE_OF_332.with(at, byte)
        let message
        try {
          message = fromBinary(FlowUpdateSchema, bytes)
        } catch {
          return
        }
        expect(['update', 'unreadable']).toContain(receivedUpdate(message).kind)
      }),
      { numRuns: 5000 },
    )
  })
})

describe('our own', () => {
  const sent = ({ node, sequence, window }: FlowUpdate, lost: number): Received => ({
    kind: 'update',
    window,
    origin: { node, sequence },
    lost,
    unknownHits: 0,
  })

  test('any update comes back as it was', () => {
    fc.assert(
      fc.property(update, fc.nat(), (one, lost) => {
        expect(received(toBinary(FlowUpdateSchema, updateMessage(one, lost)))).toEqual(sent(one, lost))
      }),
    )
  })

  test('fields of ours have numbers from 1000 on', () => {
    const message = create(FlowUpdateSchema, { lost: 1n, flow: { node: 'n', sequence: 2n, sourcePorts: [3n], Key: { dropReason: 'd' } } })
    const flow = field(
      '0a',
      field('0a', field('c2 3e', hex('64'))), // Key: drop_reason = 1000
      field('c2 3e', hex('6e')), // node = 1000
      hex('c8 3e 02'), // sequence = 1001
      field('92 3f', hex('03')), // source_ports = 1010, packed
    )
    expect(toBinary(FlowUpdateSchema, message)).toEqual(hex(`${Buffer.from(flow).toString('hex')} c0 3e 01 # lost = 1000`))
  })
})
