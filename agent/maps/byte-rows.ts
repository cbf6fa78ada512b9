// SPDX-License-Identifier: Apache-2.0
/** Encoded structs as byte strings (latin1), the form in which tables keep and compare rows. Layer: agent/maps. */
import type { MapCodecs } from './catalogue.ts'
import type { Codec } from './codec.ts'
import { viewOf } from './view.ts'

/** Key and value of one row as byte strings. */
export type Entry = readonly [key: string, value: string]

/** Makes the function that encodes one value after another through the same scratch bytes. */
export function textWriter<T>(codec: Codec<T>): (value: T) => string {
  const bytes = Buffer.alloc(codec.size)
  const view = viewOf(bytes)
  return (value) => {
    codec.encode(value, view, 0)
    return bytes.toString('latin1')
  }
}

export type EntryWriter<K, V> = (structs: readonly [K, V]) => Entry

export function entryWriter<K, V>(codecs: MapCodecs<K, V>): EntryWriter<K, V> {
  const [key, value] = [textWriter(codecs.key), textWriter(codecs.value)]
  return ([keyStruct, valueStruct]) => [key(keyStruct), value(valueStruct)]
}

export function encodeBytes<T>(codec: Codec<T>, value: T): Buffer {
  const bytes = Buffer.alloc(codec.size)
  codec.encode(value, viewOf(bytes), 0)
  return bytes
}

export function decodeBytes<T>(codec: Codec<T>, bytes: Uint8Array): T {
  return codec.decode(viewOf(bytes), 0)
}

export function decodeText<T>(codec: Codec<T>, text: string): T {
  return decodeBytes(codec, Buffer.from(text, 'latin1'))
}
