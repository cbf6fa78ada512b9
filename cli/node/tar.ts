// SPDX-License-Identifier: Apache-2.0
/** Files as a tar archive (POSIX ustar). Layer: cli (pure). */
import { InternalError } from '#lib/base/errors.ts'

export interface TarFile {
  /** relative, at most 100 bytes */
  readonly name: string
  readonly bytes: Buffer
}

const BLOCK = 512
const LONGEST_NAME = 100

/** In the order given, all of root and of one time: the same files make the same archive. */
export function tarOf(files: readonly TarFile[], seconds: number): Buffer {
  const blocks = files.flatMap(({ name, bytes }) => [header(name, bytes.length, seconds), bytes, Buffer.alloc(-bytes.length & (BLOCK - 1))])
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)])
}

function header(name: string, size: number, seconds: number): Buffer {
  if (Buffer.byteLength(name) > LONGEST_NAME) throw new InternalError(`${name} is too long a name for an archive`)
  const block = Buffer.alloc(BLOCK)
  const put = (at: number, text: string): void => {
    block.write(text, at, 'latin1')
  }
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, '0')}\0`
  put(0, name)
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
  put(
    148,
    `${block
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
  )
  return block
}
