// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { UnreachableError } from '#lib/api/errors.ts'
import { frames } from '#lib/api/decode/frames.ts'
import { framed } from '../../../../bench/control/encode.ts'

describe('parts', () => {
  async function* chunks(bytes: Buffer, cuts: readonly number[]): AsyncGenerator<Buffer> {
    let at = 0
    for (const cut of [...cuts, bytes.length].sort((a, b) => a - b)) {
      if (cut > at) yield await Promise.resolve(bytes.subarray(at, cut))
      at = Math.max(at, cut)
    }
  }
  const partsOf = async (body: AsyncIterable<Buffer>): Promise<string[]> => {
    const all: string[] = []
    for await (const parts of frames(body)) all.push(...parts.map((part) => part.toString('hex')))
    return all
  }

  test('come whole, wherever the stream is cut', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.uint8Array({ maxLength: 40 })), fc.array(fc.nat(300)), async (parts, cuts) => {
        const bytes = Buffer.concat(parts.map((part) => framed(Buffer.from(part))))
        const within = cuts.filter((cut) => cut < bytes.length)
        expect(await partsOf(chunks(bytes, within))).toEqual(parts.map((part) => Buffer.from(part).toString('hex')))
      }),
    )
  })

  test('of which one is cut off, or announced as larger than any object, end it', async () => {
    const one = framed(Buffer.from('part'))
    await expect(partsOf(chunks(one.subarray(0, 6), []))).rejects.toThrow(UnreachableError)
    await expect(partsOf(chunks(one.subarray(0, 2), []))).rejects.toThrow('in the middle of an event')
    await expect(partsOf(chunks(Buffer.from([0xff, 0xff, 0xff, 0xff, 0]), []))).rejects.toThrow('4294967295 bytes')
  })
})
