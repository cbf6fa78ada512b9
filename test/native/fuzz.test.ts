// SPDX-License-Identifier: Apache-2.0
/** Anything in any argument, on open and closed handles: an error with a code at most, never the end of the process.
 * RUNS=… for a long look. Layer: test. */
import { closeSync } from 'node:fs'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import * as native from '#native'
import type { Thunk } from './arguments.ts'
import { anyArgument, EXIT } from './arguments.ts'
import { compiled, createMap, errorCode, isRoot, loadOnly, MAP, PROGRAM } from './support.ts'
import { isCallable, memberNames, staticNames } from './surface.ts'

interface Target {
  readonly name: string
  readonly call: (args: readonly unknown[]) => unknown
}

const RUNS = Number(process.env['RUNS'] ?? 12_000)

/** What V8 and our own throwing arguments say, without a code. */
const WITHOUT_CODE = /Illegal invocation|from a getter|Class constructor/

function closable(value: unknown): value is { close(): void } {
  return typeof value === 'object' && value !== null && 'close' in value && isCallable(value.close)
}

/** Handles of every class. */
async function handles(): Promise<object[]> {
  const object = native.BpfObject.open(compiled('events'))
  await loadOnly(object, ['to_ring'])
  const program = native.BpfProgram.load({ type: PROGRAM.schedCls, instructions: EXIT })
  return [
    object,
    native.BpfObject.open(compiled('basic')),
    createMap({ type: MAP.hash }),
    createMap({ type: MAP.percpuArray }),
    createMap({ type: MAP.queue, keySize: 0 }),
    object.map('t_ring'),
    program,
    native.BpfLink.attachTcx(program, 1, 'egress'),
    native.EventReader.open(object.map('t_ring'), () => undefined),
    native.NetlinkSocket.open({ protocol: 0, groups: [1] }),
  ]
}

function calling(name: string, action: unknown, self: unknown): Target {
  return { name, call: (args) => (isCallable(action) ? Reflect.apply(action, self, [...args]) : undefined) }
}

/** The function behind a method or accessor. */
function property(of: unknown, name: string): unknown {
  if (of === null || of === undefined) return undefined
  const descriptor: { get?: unknown; value?: unknown } = Object.getOwnPropertyDescriptor(of, name) ?? {}
  return descriptor.get ?? descriptor.value
}

/** Every method and accessor of the owner's class, on `self`, which may be of another. */
function methods(owner: object, self: unknown = owner): Target[] {
  const prototype: unknown = owner.constructor.prototype
  return (memberNames(owner.constructor) ?? []).map((name) => calling(`${owner.constructor.name}#${name}`, property(prototype, name), self))
}

function construct(value: unknown, args: readonly unknown[]): unknown {
  const made: unknown = isCallable(value) ? Reflect.construct(value, [...args]) : undefined
  return made
}

/** Functions, static methods, constructors. */
function statics(): Target[] {
  return Object.entries<object>({ ...native }).flatMap(([name, value]) => {
    if (memberNames(value) === undefined) return [calling(name, value, undefined)]
    const constructor: Target = { name: `new ${name}`, call: (args) => construct(value, args) }
    return [constructor, ...staticNames(value).map((key) => calling(`${name}.${key}`, property(value, key), value))]
  })
}

/** Calls it; what it opened is closed, what it throws must be an Error with a code. Returns the code. */
function attempt(target: Target, args: readonly Thunk[]): string | undefined {
  try {
    const result = target.call(args.map((arg) => arg()))
    if (result instanceof Promise) result.catch(() => undefined)
    else if (closable(result)) result.close()
    // many namespaces at once are a burden
    else if (target.name === 'makeNetns') closeSync(Number(result))
    return undefined
  } catch (error) {
    if (error instanceof Error && ('code' in error || WITHOUT_CODE.test(error.message))) return errorCode(error)
    throw new Error(`${target.name} threw without a code`, { cause: error })
  }
}

describe.skipIf(!isRoot)('any argument', { timeout: 60_000 + 2 * RUNS }, () => {
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

  const fuzz = (targets: readonly Target[]): Set<string | undefined> => {
    const codes = new Set<string | undefined>()
    const calls = fc.tuple(fc.constantFrom(...targets), fc.array(anyArgument([...open, ...closed]), { maxLength: 4 }))
    fc.assert(
      fc.property(calls, ([target, args]) => void codes.add(attempt(target, args))),
      { numRuns: RUNS },
    )
    return codes
  }

  test('in functions and static methods', () => {
    expect(fuzz(statics())).toContain('EINVAL')
  })

  test('in methods of open handles', () => {
    const lasting = open.flatMap((handle) => methods(handle)).filter((target) => !/#(close|detach)$/.test(target.name))
    expect(fuzz(lasting)).toContain('EINVAL')
  })

  test('in methods of closed handles: EBADF or EINVAL, whatever the arguments', () => {
    const targets = closed
      .flatMap((handle) => methods(handle))
      .filter((target) => !/#(close|lost|port|keyBytes|valueBytes)$/.test(target.name))
    for (const target of targets) {
      for (const args of [[], [Buffer.alloc(4), Buffer.alloc(8)], ['x'], [1, 2]]) {
        expect(
          attempt(
            target,
            args.map((arg) => () => arg),
          ),
          target.name,
        ).toMatch(/^(EBADF|EINVAL)$/)
      }
    }
    expect(fuzz(targets)).toContain('EBADF')
  })

  test('on receivers of another class', () => {
    const impostors: unknown[] = [...open, ...closed, Object.create(native.BpfMap.prototype), {}, null, 1]
    const targets = open.flatMap((owner) => {
      const others = impostors.filter((self) => !(self instanceof owner.constructor && [...open, ...closed].includes(self)))
      return others.flatMap((self) => methods(owner, self))
    })
    expect(targets.length).toBeGreaterThan(100)
    expect([...fuzz(targets)].sort(), 'none does anything').toEqual(['EINVAL', 'no code: TypeError: Illegal invocation'])
  })

  test('the addon still works', async () => {
    const map = createMap({ type: MAP.hash })
    map.update(Buffer.alloc(4), Buffer.alloc(8, 1))
    expect((await map.dump()).count).toBe(1)
  })
})
