// SPDX-License-Identifier: Apache-2.0
/** BpfObject and BpfProgram: knobs, loading, logs, missing helpers, test runs. Layer: test. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BpfMap, BpfObject, BpfProgram, btfById } from '#native'
import { codeOf, compiled, createMap, errorCode, isRoot, loadOnly, makePins, MAP, PINS, PROGRAM, removePins, u32 } from './support.ts'

const MISSING_HELPER = 9999
const packet = Buffer.alloc(64)

/** struct __sk_buff with two fields set. */
function skb(fields: { readonly mark?: number; readonly priority?: number }): Buffer {
  const context = Buffer.alloc(192)
  context.writeUInt32LE(fields.mark ?? 0, 8)
  context.writeUInt32LE(fields.priority ?? 0, 32)
  return context
}

function open(): BpfObject {
  return BpfObject.open(compiled('basic'))
}

type Refusal = Error & { readonly verifierLog?: unknown }

async function refusal(names: readonly string[]): Promise<Refusal> {
  return loadOnly(open(), names).then(
    () => Promise.reject(new Error('was loaded')),
    (error: unknown) => (error instanceof Error ? error : new Error(String(error))),
  )
}

function thrownBy(call: () => unknown): Refusal {
  try {
    call()
  } catch (error) {
    if (error instanceof Error) return error
  }
  throw new Error('threw no error')
}

describe.skipIf(!isRoot)('BpfObject', () => {
  beforeAll(makePins)
  afterAll(removePins)

  test('shows maps, programs and BTF before it is loaded', () => {
    const object = open()
    expect(object.maps()).toContainEqual(
      expect.objectContaining({ name: 't_hash', type: MAP.hash, keySize: 8, valueSize: 8, maxEntries: 1024 }),
    )
    expect(object.maps().every((map) => map.name.endsWith('.rodata') || map.keyTypeId > 0)).toBe(true)
    expect(object.programs()).toContainEqual(expect.objectContaining({ name: 'answer', section: 'tc', type: PROGRAM.schedCls }))
    expect(object.programs()).toContainEqual(expect.objectContaining({ name: 'connect4', section: 'cgroup/connect4', type: 18 }))
    expect(object.btf().readUInt16LE(0)).toBe(0xeb9f)
  })

  test('knobs in read-only data reach the program', async () => {
    const object = open()
    const knobs = object.rodata()
    expect(codeOf(() => object.setRodata(Buffer.alloc(knobs.length + 1)))).toBe('EINVAL')
    knobs.writeUInt32LE(40, 0)
    object.setRodata(knobs)
    await loadOnly(object, ['answer'])
    const run = object.program('answer').testRun({ data: packet, context: skb({ mark: 2 }) })
    expect(run.retval).toBe(42)
    expect(run.dataOut).toEqual(packet)
    expect(run.contextOut.readUInt32LE(8)).toBe(2)
  })

  test('map attributes are taken over, skipped maps do not exist', async () => {
    const object = open()
    object.setMaxEntries('t_hash', 77)
    object.setMapType('t_hash', MAP.percpuHash)
    object.setMapFlags('t_hash', 1)
    object.skipMap('t_tail')
    await loadOnly(object, ['count'])
    expect(object.map('t_hash').info()).toMatchObject({ type: MAP.percpuHash, maxEntries: 77, flags: 1 })
    expect(codeOf(() => object.map('t_tail'))).toBe('EINVAL')
    expect(codeOf(() => object.map('nothing'))).toBe('ENOENT')
    expect(codeOf(() => object.program('jump'))).toBe('EINVAL')
  })

  test('a reused map is the same map, and survives its first handle', async () => {
    const map = createMap({ type: MAP.hash, keySize: 8, maxEntries: 1024 })
    const object = open()
    object.reuseMap('t_hash', map)
    await loadOnly(object, ['count'])
    const { id } = map.info()
    map.close()
    object.program('count').testRun({ data: packet, context: skb({ mark: 9 }) })
    const again = object.map('t_hash')
    expect(again.info()).toMatchObject({ id, name: 'native_test' })
    expect(object.maps().map((spec) => spec.name)).toContain('t_hash')
    expect(again.lookup(u32(1, 9))?.readBigUInt64LE()).toBe(1n)
  })

  test('the BTF of a loaded map can be had by id', async () => {
    const object = open()
    await loadOnly(object, ['count'])
    expect(btfById(object.map('t_hash').info().btfId).readUInt16LE(0)).toBe(0xeb9f)
    expect(codeOf(() => btfById(0xfffffff))).toBe('ENOENT')
  })

  test('is busy while it loads, and closes afterwards', async () => {
    const object = open()
    object.setAutoload('refused', false)
    object.stubHelpers([MISSING_HELPER])
    const loading = object.load()
    expect(codeOf(() => object.maps())).toBe('EBUSY')
    object.close()
    await loading
    expect(codeOf(() => object.maps())).toBe('EBADF')
  })

  test('loads once', async () => {
    const object = open()
    await loadOnly(object, ['answer'])
    expect(await object.load().then(() => 'none', errorCode)).toBe('EINVAL')
  })

  test('several objects load at a time, each with its own stubs', async () => {
    const loads = Array.from({ length: 6 }, async (_, index) => {
      const object = open()
      object.setAutoload('refused', false)
      if (index % 2 === 0) object.stubHelpers([MISSING_HELPER])
      return object.load().then(() => 'loaded', errorCode)
    })
    expect(await Promise.all(loads)).toEqual(['loaded', 'EINVAL', 'loaded', 'EINVAL', 'loaded', 'EINVAL'])
  })

  test('a file that is no object is refused', () => {
    expect(codeOf(() => BpfObject.open('/nonexistent'))).toBe('ENOENT')
    expect(codeOf(() => BpfObject.open('/proc/self/exe'))).not.toBe('none')
    expect(codeOf(() => BpfObject.open('/etc/hostname'))).not.toBe('none')
  })
})

describe.skipIf(!isRoot)('refused programs', () => {
  test('the error has code, operation and the end of the verifier log', async () => {
    const error = await refusal(['refused'])
    expect(error).toMatchObject({ code: 'EACCES', errno: 13, op: 'bpf_object__load' })
    expect(error.message).toContain('refused')
    expect(error.verifierLog).toMatch(/invalid access to packet[^]*processed \d+ insns/)
  })

  test('without stubs the missing helper is what the log names', async () => {
    expect((await refusal(['missing_in_subprogram'])).verifierLog).toContain(`unknown#${MISSING_HELPER}`)
  })
})

describe.skipIf(!isRoot)('stubHelpers', () => {
  test('a call in a subprogram becomes -EOPNOTSUPP', async () => {
    const object = open()
    object.stubHelpers([MISSING_HELPER])
    await loadOnly(object, ['missing_in_subprogram', 'missing_guarded'])
    const program = object.program('missing_in_subprogram')
    expect(program.testRun({ data: packet, context: skb({ priority: 7 }) }).retval | 0).toBe(-95)
    expect(program.testRun({ data: packet, context: skb({ priority: 8 }) }).retval).toBe(1)
    expect(object.program('missing_guarded').testRun({ data: packet }).retval).toBe(2)
  })

  test('other helpers are left alone', async () => {
    const object = open()
    object.stubHelpers([MISSING_HELPER])
    await loadOnly(object, ['count'])
    object.program('count').testRun({ data: packet, repeat: 5 })
    expect(object.map('t_hash').lookup(u32(1, 0))?.readBigUInt64LE()).toBe(5n)
  })
})

describe.skipIf(!isRoot)('BpfProgram', () => {
  beforeAll(makePins)
  afterAll(removePins)

  const exit1 = Buffer.from('b700000001000000' + '9500000000000000', 'hex')

  test('loads raw instructions and says why not', () => {
    const program = BpfProgram.load({ type: PROGRAM.schedCls, instructions: exit1 })
    expect(program.testRun({ data: packet }).retval).toBe(1)
    expect(program.info()).toMatchObject({ type: PROGRAM.schedCls, xlatedBytes: 16 })
    expect(program.info().tag).toMatch(/^[0-9a-f]{16}$/)
    const missing = Buffer.from('850000000f270000' + '9500000000000000', 'hex')
    const refused = thrownBy(() => BpfProgram.load({ type: PROGRAM.schedCls, instructions: missing }))
    expect(refused).toMatchObject({ code: 'EINVAL', op: 'bpf_prog_load' })
    expect(refused.verifierLog).toContain(`unknown#${MISSING_HELPER}`)
    expect(codeOf(() => BpfProgram.load({ type: PROGRAM.schedCls, instructions: exit1.subarray(1) }))).toBe('EINVAL')
  })

  test('pins, opens by pin and id', () => {
    const program = BpfProgram.load({ type: PROGRAM.schedCls, instructions: exit1 })
    program.pin(`${PINS}/program`)
    const { id } = program.info()
    expect(BpfProgram.openPin(`${PINS}/program`).info().id).toBe(id)
    expect(BpfProgram.openId(id).info().id).toBe(id)
    expect(codeOf(() => BpfMap.openPin(`${PINS}/program`))).toBe('EINVAL')
    expect(codeOf(() => BpfProgram.openPin(`${PINS}/nothing`))).toBe('ENOENT')
    expect(codeOf(() => BpfProgram.openId(0xfffffff))).toBe('ENOENT')
    expect([BpfProgram.nextId(id - 1), BpfProgram.nextId(0xfffffff)]).toEqual([id, undefined])
  })

  test('a tail call goes to the program whose fd was put into the array', async () => {
    const object = open()
    await loadOnly(object, ['jump', 'answer'])
    const jump = object.program('jump')
    expect(jump.testRun({ data: packet }).retval).toBe(3)
    object.map('t_tail').updateFd(u32(0), object.program('answer'))
    expect(jump.testRun({ data: packet, context: skb({ mark: 5 }) }).retval).toBe(5)
    expect(codeOf(() => object.map('t_tail').updateFd(u32(0), object.map('t_hash')))).toBe('EINVAL')
  })
})
