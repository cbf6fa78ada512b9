// SPDX-License-Identifier: Apache-2.0
/** Arbitrary arguments for the addon: wrong types, wrong lengths, almost right options. Layer: test. */
import fc from 'fast-check'

/** Makes an argument. Functions, since only the addon may touch some arguments. */
export type Thunk = () => unknown

/** r0 = 1; exit */
export const EXIT = Buffer.from('b700000001000000' + '9500000000000000', 'hex')

/** Small numbers only where a large one would be obeyed: receiveWait(7) waits, repeat: 7 runs. */
const numbers = [-1, -0, 0, 1, 2, 3, 7, 0.5, 2 ** 31, 2 ** 32, 2 ** 53, NaN, Infinity, -Infinity]
const names = ['', 'lo', 'ingress', 'connect4', 't_hash', '.rodata', 'answer', 'a\0b', '\ud800', 'x'.repeat(70_000)]
const paths = ['/', '/proc/self/exe', '/sys/fs/cgroup']

const keys = [
  'name',
  'type',
  'keySize',
  'valueSize',
  'maxEntries',
  'flags',
  'ifindex',
  'direction',
  'handle',
  'priority',
  'data',
  'context',
]
const moreKeys = ['repeat', 'protocol', 'groups', 'instructions', 'license', 'maxBytes', 'perfPages']

const sound = { name: 'x', type: 1, keySize: 4, valueSize: 4, maxEntries: 1, ifindex: 1, direction: 'ingress', handle: 1, priority: 1 }
const soundRest = { data: EXIT, instructions: EXIT, protocol: 0 }

const odd: readonly Thunk[] = [
  detached,
  thrower,
  () => new DataView(new ArrayBuffer(8)),
  () => new Uint32Array(2),
  () => new ArrayBuffer(8),
  () => new Uint8Array(new SharedArrayBuffer(8)),
  () => new Array<unknown>(2 ** 32 - 1),
  () => () => undefined,
  () => Symbol('s'),
]

function constant(value: unknown): Thunk {
  return () => value
}

function detached(): Uint8Array {
  const bytes = new Uint8Array(8)
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] })
  return bytes
}

function thrower(): object {
  const refuse = (): never => {
    throw new Error('from a getter')
  }
  return new Proxy({}, { get: refuse, has: refuse, getPrototypeOf: refuse, ownKeys: refuse })
}

/** `handles` are arguments as well. */
export function anyArgument(handles: readonly object[]): fc.Arbitrary<Thunk> {
  const plain = fc.oneof(
    fc.constantFrom<unknown>(undefined, null, true, false, 1n, ...numbers, ...names, ...paths).map(constant),
    fc.uint8Array({ maxLength: 40 }).map(constant),
    fc.constantFrom(4, 8, 16, 64, 192).map((size) => constant(Buffer.alloc(size, 1))),
    fc.constantFrom(...odd),
    fc.constantFrom(...handles).map(constant),
  )
  const key = fc.constantFrom(...keys, ...moreKeys)
  const options = fc
    .array(fc.tuple(key, plain), { maxLength: 12 })
    .map((entries) => () => Object.fromEntries(entries.map(([name, value]) => [name, value()])))
  const bad = fc.oneof(fc.constantFrom<unknown>(null, '', -1, NaN, 0.5, 2 ** 53, {}, 1n), fc.uint8Array({ maxLength: 9 }))
  const nearly = fc.tuple(key, bad).map(([name, value]) => constant({ ...sound, ...soundRest, [name]: value }))
  const list = fc.array(plain, { maxLength: 4 }).map((items) => () => items.map((item) => item()))
  return fc.oneof({ weight: 6, arbitrary: plain }, { weight: 1, arbitrary: fc.oneof<fc.Arbitrary<Thunk>[]>(options, nearly, list) })
}
