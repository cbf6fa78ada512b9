// SPDX-License-Identifier: Apache-2.0
/** Anything in any argument, on open and closed handles: an error with a code at most, never the end of the process. Layer: test. */
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import * as native from '#native'
import { compiled, createMap, isRoot, loadOnly, MAP, PROGRAM } from './support.ts'

type Callable = (...args: unknown[]) => unknown

interface Target {
  readonly name: string
  readonly call: (args: readonly unknown[]) => unknown
}

const EXIT = Buffer.from('b700000001000000' + '9500000000000000', 'hex')

function isCallable(value: unknown): value is Callable {
  return typeof value === 'function'
}

function closable(value: unknown): value is { close(): void } {
  return typeof value === 'object' && value !== null && 'close' in value && isCallable(value.close)
}

/** One handle of each class. */
async function handles(): Promise<object[]> {
  const object = native.BpfObject.open(compiled('events'))
  await loadOnly(object, ['to_ring'])
  const program = native.BpfProgram.load({ type: PROGRAM.schedCls, instructions: EXIT })
  const link = native.BpfLink.attachTcx(program, 1, 'egress')
  const reader = native.EventReader.open(object.map('t_ring'), () => undefined)
  return [
    object,
    native.BpfObject.open(compiled('basic')),
    createMap({ type: MAP.hash }),
    createMap({ type: MAP.percpuArray }),
    createMap({ type: MAP.queue, keySize: 0 }),
    object.map('t_ring'),
    program,
    link,
    reader,
    native.NetlinkSocket.open({ protocol: 0, groups: [1] }),
  ]
}

function methodsOf(handle: object): string[] {
  const prototype: unknown = Object.getPrototypeOf(handle)
  return Object.getOwnPropertyNames(prototype).filter((name) => name !== 'constructor')
}

/** A method or accessor called on `self`, which may be of another class. */
function method(owner: object, name: string, self: unknown): Target {
  const descriptor = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(owner), name)
  const action: unknown = descriptor?.value ?? descriptor?.get
  return { name: `${owner.constructor.name}#${name}`, call: (args) => (isCallable(action) ? action.apply(self, [...args]) : undefined) }
}

function statics(): Target[] {
  return Object.entries(native).flatMap(([name, value]) => {
    const own = Object.getOwnPropertyNames(value).filter((key) => !['length', 'name', 'prototype', 'arguments', 'caller'].includes(key))
    const targets = own.map((key): Target => {
      const action: unknown = Object.getOwnPropertyDescriptor(value, key)?.value
      return { name: `${name}.${key}`, call: (args) => (isCallable(action) ? action.apply(value, [...args]) : undefined) }
    })
    const construct: Target = { name: `new ${name}`, call: (args) => Reflect.construct(value, [...args]) }
    return isClass(value) ? [...targets, construct] : [{ name, call: (args) => Reflect.apply(value, undefined, [...args]) }]
  })
}

function isClass(value: { prototype?: unknown }): boolean {
  return typeof value.prototype === 'object' && value.prototype !== null && Object.getOwnPropertyNames(value.prototype).length > 1
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

/** Small numbers only where a large one would be obeyed: receiveWait(7) waits, repeat: 7 runs. */
const numbers = [-1, -0, 0, 1, 2, 3, 7, 0.5, 2 ** 31, 2 ** 32, 2 ** 53, NaN, Infinity, -Infinity]
const texts = ['', 'lo', 'ingress', 'connect4', 't_hash', '.rodata', 'answer', '/', '/proc/self/exe', '/sys/fs/cgroup', 'a\0b', '\ud800', 'x'.repeat(70_000)]

type Thunk = () => unknown

const always = (value: unknown): Thunk => () => value

const odd: readonly Thunk[] = [
  detached,
  thrower,
  () => new DataView(new ArrayBuffer(8)),
  () => new Uint32Array(2),
  () => new ArrayBuffer(8),
  () => new Uint8Array(new SharedArrayBuffer(8)),
  () => new Array(2 ** 32 - 1),
  () => () => undefined,
  () => Symbol('s'),
]

const keys = ['name', 'type', 'keySize', 'valueSize', 'maxEntries', 'flags', 'ifindex', 'direction', 'handle', 'priority', 'data', 'context']
const moreKeys = ['repeat', 'protocol', 'groups', 'instructions', 'license', 'maxBytes', 'perfPages']
const sound = { name: 'x', type: 1, keySize: 4, valueSize: 4, maxEntries: 1, ifindex: 1, direction: 'ingress', handle: 1, priority: 1 }
const soundRest = { data: EXIT, instructions: EXIT, protocol: 0 }

/** Arguments as functions, since some are made to be touched by nobody but the addon. */
function anything(open: readonly object[]): fc.Arbitrary<Thunk> {
  const plain = fc.oneof(
    fc.constantFrom<unknown>(undefined, null, true, false, 1n, ...numbers, ...texts).map(always),
    fc.uint8Array({ maxLength: 40 }).map(always),
    fc.constantFrom(4, 8, 16, 64, 192).map((size) => always(Buffer.alloc(size, 1))),
    fc.constantFrom(...odd),
    fc.constantFrom(...open).map(always),
  )
  const options = fc
    .array(fc.tuple(fc.constantFrom(...keys, ...moreKeys), plain), { maxLength: 12 })
    .map((entries): Thunk => () => Object.fromEntries(entries.map(([key, value]) => [key, value()])))
  const bad = fc.oneof(fc.constantFrom<unknown>(null, '', -1, NaN, 0.5, 2 ** 53, {}, 1n), fc.uint8Array({ maxLength: 9 }))
  const nearly = fc
    .tuple(fc.constantFrom(...keys, ...moreKeys), bad)
    .map(([key, value]): Thunk => () => ({ ...sound, ...soundRest, [key]: value }))
  const list = fc.array(plain, { maxLength: 4 }).map((items): Thunk => () => items.map((item) => item()))
  return fc.oneof({ weight: 6, arbitrary: plain }, { weight: 1, arbitrary: fc.oneof(options, nearly, list) })
}

const codes = new Set<string>()

/** Calls it; what it opened is closed, what it throws must be an Error. */
function attempt(target: Target, args: readonly Thunk[]): void {
  try {
    const result = target.call(args.map((arg) => arg()))
    if (result instanceof Promise) result.catch(() => undefined)
    else if (closable(result)) result.close()
  } catch (error) {
    if (!(error instanceof Error)) throw new Error(`${target.name} threw no Error`, { cause: error })
    if ('code' in error) codes.add(String(error.code))
    else if (!/Illegal invocation|from a getter|Class constructor/.test(error.message)) throw new Error(`${target.name} threw without a code`, { cause: error })
  }
}

describe.skipIf(!isRoot)('any argument', () => {
  let open: object[]
  let closed: object[]

  beforeAll(async () => {
    open = await handles()
    closed = await handles()
    for (const handle of closed) if (closable(handle)) handle.close()
    return () => {
      for (const handle of open) if (closable(handle)) handle.close()
      native.setBatchCalls(true)
    }
  })

  const fuzz = (targets: readonly Target[]): void => {
    const calls = fc.tuple(fc.constantFrom(...targets), fc.array(anything([...open, ...closed]), { maxLength: 4 }))
    fc.assert(
      fc.property(calls, ([target, args]) => attempt(target, args)),
      { numRuns: 12_000 },
    )
  }

  test('in functions and static methods', () => fuzz(statics()))

  test('in methods of open handles', () => {
    fuzz(open.flatMap((handle) => methodsOf(handle).filter((name) => name !== 'close' && name !== 'detach').map((name) => method(handle, name, handle))))
  })

  test('in methods of closed handles: EBADF or EINVAL, whatever the arguments', () => {
    const targets = closed.flatMap((handle) =>
      methodsOf(handle)
        .filter((name) => !['close', 'lost', 'port', 'keyBytes', 'valueBytes'].includes(name))
        .map((name) => method(handle, name, handle)),
    )
    for (const target of targets) {
      for (const args of [[], [Buffer.alloc(4), Buffer.alloc(8)], ['x'], [1, 2]]) {
        expect(() => target.call(args), target.name).toThrow(expect.objectContaining({ code: expect.stringMatching(/^(EBADF|EINVAL)$/) }))
      }
    }
    fuzz(targets)
  })

  test('on handles of another class', () => {
    const every = [...open, ...closed, Object.create(native.BpfMap.prototype), {}, null, 1]
    fuzz(open.flatMap((handle) => methodsOf(handle).flatMap((name) => every.filter((self) => self?.constructor !== handle.constructor || !open.includes(self)).map((self) => method(handle, name, self)))))
  })

  test('the handles still work', async () => {
    const map = createMap({ type: MAP.hash })
    map.update(Buffer.alloc(4), Buffer.alloc(8, 1))
    expect((await map.dump()).count).toBe(1)
    expect(codes).toContain('EINVAL')
    expect(codes).toContain('EBADF')
  })
})
