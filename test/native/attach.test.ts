// SPDX-License-Identifier: Apache-2.0
/** Links, clsact filters, cgroup and XDP attachments in a network namespace of our own. Layer: test. */
import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { BpfProgram } from '#native'
import {
  BpfLink,
  BpfObject,
  cgroupAttach,
  cgroupDetach,
  cgroupQuery,
  ifindexOf,
  tcAttach,
  tcCreateHook,
  tcDestroyHook,
  tcDetach,
  tcQuery,
  tcxQuery,
  xdpAttach,
  xdpQuery,
} from '#native'
import { codeOf, compiled, isRoot, loadOnly, makePins, PINS, removePins, withCgroup } from './support.ts'

const NO_DEVICE = 0x7ffffff0
const XDP_GENERIC = 2

interface Programs {
  readonly answer: BpfProgram
  readonly jump: BpfProgram
  readonly pass: BpfProgram
  readonly connect4: BpfProgram
}

async function loadPrograms(): Promise<Programs> {
  const object = BpfObject.open(compiled('basic'))
  await loadOnly(object, ['answer', 'jump', 'pass', 'connect4'])
  const [answer, jump, pass, connect4] = ['answer', 'jump', 'pass', 'connect4'].map((name) => object.program(name))
  if (!answer || !jump || !pass || !connect4) throw new Error('unreachable')
  return { answer, jump, pass, connect4 }
}

const ip = (...args: readonly string[]): void => void execFileSync('ip', args)

describe.skipIf(!isRoot)('attachments', () => {
  let programs: Programs
  let ifindex: number

  beforeAll(async () => {
    makePins()
    programs = await loadPrograms()
  })
  afterAll(removePins)

  beforeEach(() => {
    ip('link', 'add', 'nptest0', 'type', 'veth', 'peer', 'name', 'nptest1')
    ifindex = ifindexOf('nptest0')
    return () => {
      if (ifindexOf('nptest0') !== 0) ip('link', 'del', 'nptest0')
    }
  })

  const id = (program: BpfProgram): number => program.info().id

  test('tcx: attach, query, update in place, detach', () => {
    const link = BpfLink.attachTcx(programs.answer, ifindex, 'ingress')
    expect(link.info()).toMatchObject({ type: 11, programId: id(programs.answer), ifindex, attachType: 46 })
    expect(tcxQuery(ifindex, 'ingress')).toEqual({ programIds: [id(programs.answer)], linkIds: [link.info().id] })
    expect(tcxQuery(ifindex, 'egress')).toEqual({ programIds: [], linkIds: [] })
    link.update(programs.jump)
    expect(tcxQuery(ifindex, 'ingress')).toEqual({ programIds: [id(programs.jump)], linkIds: [link.info().id] })
    link.detach()
    expect(tcxQuery(ifindex, 'ingress').programIds).toEqual([])
    expect(link.info().ifindex).toBe(0)
    expect(codeOf(() => link.update(programs.answer))).toBe('ENOLINK')
  })

  test('tcx: several programs, in order', () => {
    const first = BpfLink.attachTcx(programs.answer, ifindex, 'egress')
    const second = BpfLink.attachTcx(programs.jump, ifindex, 'egress')
    expect(tcxQuery(ifindex, 'egress').programIds).toEqual([id(programs.answer), id(programs.jump)])
    first.close()
    expect(tcxQuery(ifindex, 'egress').programIds).toEqual([id(programs.jump)])
    second.close()
  })

  test('a pinned link outlives its handle, and its interface outlives nothing', () => {
    const link = BpfLink.attachTcx(programs.answer, ifindex, 'ingress')
    link.pin(`${PINS}/link`)
    link.close()
    expect(tcxQuery(ifindex, 'ingress').programIds).toEqual([id(programs.answer)])
    const again = BpfLink.openPin(`${PINS}/link`)
    expect(again.info()).toMatchObject({ ifindex, programId: id(programs.answer) })
    ip('link', 'del', 'nptest0')
    expect(again.info().ifindex).toBe(0)
    expect(codeOf(() => tcxQuery(ifindex, 'ingress'))).toBe('ENODEV')
  })

  test('what cannot be attached', () => {
    expect(codeOf(() => BpfLink.attachTcx(programs.answer, NO_DEVICE, 'ingress'))).toBe('ENODEV')
    expect(codeOf(() => BpfLink.attachTcx(programs.pass, ifindex, 'ingress'))).toBe('EINVAL')
    expect(codeOf(() => BpfLink.attachXdp(programs.answer, ifindex))).toBe('EINVAL')
    expect(codeOf(() => BpfLink.attachCgroup(programs.connect4, '/sys/fs/nothing', 'connect4'))).toBe('ENOENT')
  })

  test('clsact: attach, replace in place, query, detach', () => {
    const filter = { ifindex, direction: 'ingress', handle: 1, priority: 1 } as const
    expect([tcQuery(filter), tcDetach(filter)]).toEqual([undefined, false])
    expect([tcCreateHook(ifindex), tcCreateHook(ifindex)]).toEqual([true, false])
    expect([tcQuery(filter), tcDetach(filter)]).toEqual([undefined, false])
    expect(tcAttach(filter, programs.answer)).toBe(id(programs.answer))
    expect(tcAttach(filter, programs.jump)).toBe(id(programs.jump))
    expect(tcQuery(filter)).toBe(id(programs.jump))
    expect(tcQuery({ ...filter, direction: 'egress' })).toBeUndefined()
    expect(tcQuery({ ...filter, handle: 2 })).toBeUndefined()
    expect([tcDetach(filter), tcDetach(filter), tcQuery(filter)]).toEqual([true, false, undefined])
    tcDestroyHook(ifindex)
    expect(codeOf(() => tcDestroyHook(ifindex))).toBe('EINVAL')
  })

  test('clsact: another kind of filter at our priority is not ours to find or remove', () => {
    const filter = { ifindex, direction: 'ingress', handle: 1, priority: 1 } as const
    tcCreateHook(ifindex)
    execFileSync('tc', ['filter', 'add', 'dev', 'nptest0', 'ingress', 'prio', '1', 'protocol', 'all', 'u32', 'match', 'u32', '0', '0'])
    expect([tcQuery(filter), tcDetach(filter)]).toEqual([undefined, false])
    expect(codeOf(() => tcAttach(filter, programs.answer))).not.toBe('none')
  })

  test('clsact: errors say what the kernel said', () => {
    const filter = { ifindex, direction: 'ingress', handle: 1, priority: 1 } as const
    expect(() => tcAttach(filter, programs.answer)).toThrow(/bpf_tc_attach: .*Qdisc/)
    expect(codeOf(() => tcCreateHook(NO_DEVICE))).toBe('ENODEV')
    expect(codeOf(() => tcQuery({ ...filter, ifindex: NO_DEVICE }))).toBe('ENODEV')
    expect(codeOf(() => tcAttach({ ...filter, priority: 65536 }, programs.answer))).toBe('EINVAL')
    expect(codeOf(() => tcAttach({ ...filter, handle: 0 }, programs.answer))).toBe('EINVAL')
  })

  test('XDP by link and without', () => {
    expect(xdpQuery(ifindex)).toBeUndefined()
    const link = BpfLink.attachXdp(programs.pass, ifindex, XDP_GENERIC)
    expect(link.info()).toMatchObject({ type: 6, ifindex, programId: id(programs.pass) })
    expect(xdpQuery(ifindex)).toBe(id(programs.pass))
    link.close()
    expect(xdpQuery(ifindex)).toBeUndefined()
    xdpAttach(ifindex, programs.pass, XDP_GENERIC)
    expect(xdpQuery(ifindex)).toBe(id(programs.pass))
    xdpAttach(ifindex, undefined, XDP_GENERIC)
    expect(xdpQuery(ifindex)).toBeUndefined()
    expect(codeOf(() => xdpAttach(NO_DEVICE, programs.pass))).toBe('ENODEV')
  })

  test('cgroup by link and without', async () => {
    await withCgroup((path) => {
      const link = BpfLink.attachCgroup(programs.connect4, path, 'connect4')
      expect(link.info()).toMatchObject({ type: 3, attachType: 10, programId: id(programs.connect4) })
      expect(cgroupQuery(path, 'connect4')).toEqual([id(programs.connect4)])
      expect(codeOf(() => BpfLink.attachCgroup(programs.connect4, path, 'connect6'))).toBe('EINVAL')
      link.close()
      expect(cgroupQuery(path, 'connect4')).toEqual([])
      expect(cgroupDetach(path, 'connect4', programs.connect4)).toBe(false)
      cgroupAttach(path, 'connect4', programs.connect4)
      expect(cgroupQuery(path, 'connect4')).toEqual([id(programs.connect4)])
      expect(cgroupDetach(path, 'connect4', programs.connect4)).toBe(true)
    })
  })
})
