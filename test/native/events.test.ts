// SPDX-License-Identifier: Apache-2.0
/** EventReader on a ring buffer and on a perf event array: order, batches, losses. Layer: test. */
import { beforeAll, describe, expect, test } from 'vitest'
import type { BpfMap, BpfProgram } from '#native'
import { BpfObject, EventReader } from '#native'
import { until } from '../../testkit/base/until.ts'
import { recordsOf } from '#agent/maps/records.ts'
import { codeOf, compiled, createMap, isRoot, loadOnly, MAP } from './support.ts'

const packet = Buffer.alloc(64)
const RECORD_END = 0x0a0b0c0d

/** Counts what arrives. */
class Sink {
  readonly batches: number[] = []
  readonly numbers: number[] = []

  readonly onBatch = (records: Buffer, count: number): void => {
    const split = recordsOf(records)
    expect(split.length).toBe(count)
    this.batches.push(count)
    for (const record of split) {
      expect(record.readUInt32LE(8)).toBe(RECORD_END)
      this.numbers.push(record.readUInt32LE(0))
    }
  }
}

function consecutive(numbers: readonly number[]): boolean {
  return numbers.every((number, index) => index === 0 || number === (numbers[index - 1] ?? 0) + 1)
}

/** Perf buffers are each CPU's own, and a process that runs programs may be moved to another CPU meanwhile. */
function inOrder(kind: 'ring' | 'perf', numbers: readonly number[]): readonly number[] {
  return kind === 'ring' ? numbers : numbers.toSorted((a, b) => a - b)
}

describe.skipIf(!isRoot).each(['ring', 'perf'] as const)('EventReader on a %s buffer', (kind) => {
  let map: BpfMap
  let program: BpfProgram

  beforeAll(async () => {
    const object = BpfObject.open(compiled('events'))
    await loadOnly(object, [`to_${kind}`])
    map = object.map(`t_${kind}`)
    program = object.program(`to_${kind}`)
  })

  test('all records, in order as far as there is one, many at a time', async () => {
    const sink = new Sink()
    const reader = EventReader.open(map, sink.onBatch)
    program.testRun({ data: packet, repeat: 1000 })
    program.testRun({ data: packet, repeat: 500 })
    await until('all records', () => sink.numbers.length >= 1500)
    expect(sink.numbers.length).toBe(1500)
    expect(consecutive(inOrder(kind, sink.numbers))).toBe(true)
    expect(sink.batches.length).toBeLessThan(20)
    expect(reader.lost()).toBe(0)
    reader.close()
  })

  test('small batches go on until the buffer is empty', async () => {
    const sink = new Sink()
    const reader = EventReader.open(map, sink.onBatch, { maxBytes: 100 })
    program.testRun({ data: packet, repeat: 300 })
    await until('all records', () => sink.numbers.length >= 300)
    expect(sink.batches.length).toBeGreaterThan(30)
    expect(Math.max(...sink.batches)).toBeLessThan(20)
    expect(consecutive(inOrder(kind, sink.numbers))).toBe(true)
    reader.close()
  })

  test('the handle of the map may be closed', async () => {
    const object = BpfObject.open(compiled('events'))
    await loadOnly(object, [`to_${kind}`])
    const sink = new Sink()
    const own = object.map(`t_${kind}`)
    const reader = EventReader.open(own, sink.onBatch)
    own.close()
    const writer = object.program(`to_${kind}`)
    object.close()
    writer.testRun({ data: packet, repeat: 10 })
    await until('all records', () => sink.numbers.length === 10)
    reader.close()
  })

  test('closing inside the callback ends it there', async () => {
    let calls = 0
    const reader = EventReader.open(
      map,
      () => {
        calls++
        reader.close()
      },
      { maxBytes: 1 },
    )
    program.testRun({ data: packet, repeat: 10 })
    await until('a call', () => calls > 0)
    const later = new Sink()
    const next = EventReader.open(map, later.onBatch)
    program.testRun({ data: packet, repeat: 1 })
    await until('a record for the next reader', () => later.numbers.length > 0)
    expect(calls).toBe(1)
    next.close()
    reader.close()
    expect(reader.lost()).toBe(0)
  })
})

describe.skipIf(!isRoot)('EventReader', () => {
  test('counts what a perf buffer had to drop', async () => {
    const object = BpfObject.open(compiled('events'))
    await loadOnly(object, ['to_perf'])
    const sink = new Sink()
    const reader = EventReader.open(object.map('t_perf'), sink.onBatch, { perfPages: 1 })
    const program = object.program('to_perf')
    let sent = 0
    const send = (repeat: number): boolean => {
      program.testRun({ data: packet, repeat })
      sent += repeat
      return false
    }
    send(1000)
    await until('a record', () => sink.numbers.length > 0)
    // a processor's loss is told with the next record of its own that fits; a fast reader may lose none at first
    await until('the loss told', () => reader.lost() > 0 || send(sent < 100_000 ? 1000 : 1))
    await until('all records accounted for', () => sink.numbers.length + reader.lost() >= sent || send(1))
    reader.close()
  })

  test('refuses maps that hold no events, and page counts that are no power of two', async () => {
    expect(codeOf(() => EventReader.open(createMap({ type: MAP.hash }), () => undefined))).toBe('EINVAL')
    const object = BpfObject.open(compiled('events'))
    await loadOnly(object, ['to_perf'])
    expect(codeOf(() => EventReader.open(object.map('t_perf'), () => undefined, { perfPages: 3 }))).toBe('EINVAL')
  })
})
