// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { silentLog } from '#lib/obs/log.ts'
import { Attachments, interfacePrograms, type WantedProgram } from '#agent/dataplane/attach/attachments.ts'
import { parseHookKey, pinKey, pinName, type LoadedProgram, type Place } from '#agent/dataplane/attach/hook.ts'
import { hooksContract } from '../../../support/contracts/hooks-contract.ts'
import { FakeHooks } from '../../../support/fakes/fake-hooks.ts'
import { anInterface } from '../../../support/interfaces.ts'

function program(id: number): LoadedProgram {
  // nothing here looks into the handle
  return {
    id,
    get handle(): never {
      throw new Error('not used')
    },
  }
}

function at(key: string, instance: number, id: number): WantedProgram<Place> {
  return { place: { key, instance }, program: program(id) }
}

function setup(...there: WantedProgram<Place>[]) {
  const hooks = new FakeHooks()
  for (const one of there) hooks.there.set(one.place.key, { instance: one.place.instance, program: one.program.id })
  const attachments = new Attachments({ name: 'hooks', hooks, log: silentLog })
  const apply = (...wanted: WantedProgram<Place>[]) => {
    attachments.setDesired(wanted)
    return run()
  }
  const run = () => {
    const before = hooks.calls.length
    const failed = []
    for (const part of [attachments.writes, attachments.removals])
      if (part.pending()) failed.push(...part.apply().failures.map((one) => one.item))
    return { calls: hooks.calls.slice(before), failed }
  }
  return { hooks, attachments, apply, run }
}

describe('the fake does what the kernel does', () => {
  hooksContract(() => {
    const hooks = new FakeHooks()
    return {
      open: () => hooks,
      places: [
        { key: 'eth0/ingress', instance: 2 },
        { key: 'eth0/egress', instance: 2 },
      ],
      programs: [program(1), program(2), program(3)],
    }
  })
})

describe('attachments', () => {
  test('are made where nothing is', () => {
    const { attachments, apply } = setup()
    expect(apply(at('eth0/ingress', 2, 7), at('eth0/egress', 2, 8))).toEqual({
      calls: ['write eth0/ingress 7', 'write eth0/egress 8'],
      failed: [],
    })
    expect(attachments).toMatchObject({ adopted: 0, settled: 2, complete: true })
  })

  test('that are right are adopted without a call', () => {
    const { attachments, apply, run } = setup(at('eth0/ingress', 2, 7))
    expect(apply(at('eth0/ingress', 2, 7)).calls).toEqual([])
    expect(attachments.adopted).toBe(1)
    expect(run().calls).toEqual([])
  })

  test('of another program are replaced', () => {
    const { apply } = setup(at('eth0/ingress', 2, 7))
    expect(apply(at('eth0/ingress', 2, 9)).calls).toEqual(['write eth0/ingress 9'])
  })

  test('of an interface that came again under its name are made again', () => {
    const { apply } = setup()
    apply(at('npl1/ingress', 2, 7))
    expect(apply(at('npl1/ingress', 5, 7)).calls).toEqual(['write npl1/ingress 7'])
  })

  test('that are not wanted are removed, also those found at the start', () => {
    const { apply } = setup(at('gone/ingress', 0, 7))
    expect(apply(at('eth0/ingress', 2, 7)).calls).toEqual(['write eth0/ingress 7', 'clear gone/ingress'])
    expect(apply().calls).toEqual(['clear eth0/ingress'])
  })

  test('that fail stay pending, the others go on', () => {
    const { hooks, attachments, apply, run } = setup()
    hooks.broken.add('eth0/ingress')
    expect(apply(at('eth0/ingress', 2, 7), at('eth1/ingress', 3, 7))).toEqual({ calls: ['write eth1/ingress 7'], failed: ['eth0/ingress'] })
    expect(attachments.complete).toBe(false)
    hooks.broken.clear()
    expect(run()).toEqual({ calls: ['write eth0/ingress 7'], failed: [] })
  })

  test('to an interface that has gone, of which no message has come yet, are no failure and wait for nothing', () => {
    const { hooks, attachments, apply, run } = setup()
    hooks.gone.add('npl1/ingress')
    expect(apply(at('npl1/ingress', 2, 7), at('npl2/ingress', 3, 7))).toEqual({ calls: ['write npl2/ingress 7'], failed: [] })
    const isSettled = (instance: number): boolean => attachments.isSettled({ key: 'npl1/ingress', instance })
    expect([attachments.writes.pending(), isSettled(2)]).toEqual([false, false])
    expect(run().calls).toEqual([])
    hooks.gone.clear()
    expect(apply(at('npl1/ingress', 5, 7)).calls).toEqual(['write npl1/ingress 7', 'clear npl2/ingress'])
    expect([isSettled(2), isSettled(5)]).toEqual([false, true])
  })

  test('that a stranger removed or replaced are found and put back', () => {
    const { hooks, attachments, apply, run } = setup()
    apply(at('eth0/ingress', 2, 7), at('eth0/egress', 2, 8), at('eth1/ingress', 3, 7))
    hooks.there.delete('eth0/ingress')
    hooks.there.set('eth0/egress', { instance: 2, program: 99 })
    expect(run().calls).toEqual([])
    expect(attachments.check().map(({ key }) => key)).toEqual(['eth0/ingress', 'eth0/egress'])
    expect(run().calls).toEqual(['write eth0/ingress 7', 'write eth0/egress 8'])
    expect(attachments.check()).toEqual([])
  })

  test('that a stranger removed are put back, though the same is wanted again in between', () => {
    const { hooks, attachments, apply } = setup()
    const wanted = at('eth0/ingress', 2, 7)
    apply(wanted)
    hooks.there.delete('eth0/ingress')
    expect(attachments.check()).toHaveLength(1)
    expect(apply(wanted).calls).toEqual(['write eth0/ingress 7'])
  })
})

test('a place is wanted at the interface that it was wanted at', () => {
  const { attachments, apply } = setup()
  apply(at('npl1/ingress', 2, 7))
  expect([2, 5].map((instance) => attachments.wants({ key: 'npl1/ingress', instance }))).toEqual([true, false])
})

test('workloads and host devices get their programs by direction', () => {
  const programs = { from_workload: program(1), to_workload: program(2), from_host: program(3), to_host: program(4) }
  const wanted = interfacePrograms(
    [
      { kind: 'workload', iface: anInterface({ index: 5, name: 'npl0123456789a' }) },
      { kind: 'host', iface: anInterface({ index: 2, name: 'eth0' }) },
    ],
    programs,
  )
  expect(wanted.map(({ place, program }) => `${place.key} ${place.instance} ${program.id}`)).toEqual([
    'npl0123456789a/ingress 5 1',
    'npl0123456789a/egress 5 2',
    'eth0/ingress 2 3',
    'eth0/egress 2 4',
  ])
})

test.each(['eth0/ingress', 'eth0.100/egress', 'a%2e.b:c/ingress', 'cgroup/connect4'])(
  'the pin of %s leads back to it and has no dot',
  (key) => {
    expect(pinName(key)).not.toMatch(/[./]/)
    expect(pinKey(pinName(key))).toBe(key)
  },
)

test('keys of other places are no hooks', () => {
  expect(parseHookKey('cgroup/connect4')).toBeUndefined()
  expect(parseHookKey('eth0.1/egress')).toEqual({ iface: 'eth0.1', direction: 'egress' })
})
