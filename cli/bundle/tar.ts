// SPDX-License-Identifier: Apache-2.0
/** Files as a tar archive (POSIX ustar). Layer: cli (pure). */
import { InternalError } from '#lib/base/errors.ts'

export interface TarFile {
  /** relative; at most 100 bytes after a "/", and 155 before it */
  readonly name: string
  readonly bytes: Buffer
}

const BLOCK = 512
const LONGEST_NAME = 100
const LONGEST_PREFIX = 155

/** In the order given, all of root and of one time: the same files make the same archive. */
export function tarOf(files: readonly TarFile[], seconds: number): Buffer {
  const blocks = files.flatMap(({ name, bytes }) => [header(name, bytes.length, seconds), bytes, Buffer.alloc(-bytes.length & (BLOCK - 1))])
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)])
}

/** A long name in two fields, cut at a "/". */
function partsOf(name: string): readonly [prefix: string, end: string] {
  if (Buffer.byteLength(name) <= LONGEST_NAME) return ['', name]
  const cuts = [...name.matchAll(/\//g)].map(({ index }) => [name.slice(0, index), name.slice(index + 1)] as const)
  const found = cuts.find(([prefix, end]) => Buffer.byteLength(prefix) <= LONGEST_PREFIX && Buffer.byteLength(end) <= LONGEST_NAME)
  if (found === undefined) throw new InternalError(`${name} is too long a name for an archive`)
  return found
}

function header(name: string, size: number, seconds: number): Buffer {
  const [prefix, end] = partsOf(name)
  const block = Buffer.alloc(BLOCK)
  const put = (at: number, text: string): void => {
    block.write(text, at, 'latin1')
  }
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`
  put(0, end)
  put(100, octal(0o644, 7))
  put(108, octal(0, 7))
  put(116, octal(0, 7))
  put(124, octal(size, 11))
  put(136, octal(Math.floor(seconds), 11))
  // the sum counts its own field as spaces
  put(148, ' '.repeat(8))
  put(156, '0')
  put(257, 'ustar\0' + '00')
  put(265, 'root\0')
  put(297, 'root\0')
  put(345, prefix)
  put(
    148,
    `${block
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
  )
  return block
}
