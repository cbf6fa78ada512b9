// SPDX-License-Identifier: Apache-2.0
/** The switch in random orders of all that may happen: at any moment one of the two serves a node, and the end is the
 * same. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MINUTE, World } from './world.ts'

type Event = Readonly<{ kind: Kind; of: number; most: number }>
const KINDS = [
  ...[
    'operate',
    'operate',
    'operate',
    'operate',
    'round',
    'round',
    'round',
    'go-on',
    'hear',
    'hear',
    'follow',
    'prove',
    'serve-proxy',
    'tick',
  ],
  ...['restart', 'join', 'leave', 'down', 'up', 'long', 'reverse', 'break', 'mend', 'cordon', 'pin', 'remake'],
] as const
type Kind = (typeof KINDS)[number]

const events = fc.array(fc.record({ kind: fc.constantFrom(...KINDS), of: fc.nat({ max: 7 }), most: fc.nat({ max: 3 }) }), {
  minLength: 20,
  maxLength: 160,
})

function happen(world: World, { kind, of, most }: Event): void {
  const machines = [...world.machines.values()]
  const machine = machines[of % Math.max(1, machines.length)]
  if (kind === 'operate') {
    // killed after some of its writes, which go out in any order
    world.operate(most, (writes) => [...writes.slice(of), ...writes.slice(0, of)])
    return
  }
  if (kind === 'tick') world.now += 1000
  if (kind === 'round') world.round()
  if (kind === 'go-on') world.settle(of)
  if (kind === 'long') passTime(world)
  if (kind === 'reverse') {
    const { asked } = world
    world.asked = { ...asked, mode: asked.mode === 'BPF' ? 'Standard' : 'BPF', generation: asked.generation + 1 }
  }
  if (kind === 'join' && machines.length < 6) world.join(`n${of}-${world.now}-${machines.length}`)
  if (machine === undefined) return
  if (kind === 'hear') world.hear(machine)
  if (kind === 'follow') world.follow(machine)
  if (kind === 'prove') world.prove(machine)
  if (kind === 'serve-proxy') world.serveProxy(machine)
  if (kind === 'restart') world.restart(machine)
  if (kind === 'leave' && machines.length > 1) world.machines.delete(machine.name)
  if (kind === 'remake') world.remake(machine)
  if (kind === 'down' && machine.isReady) Object.assign(machine, { isReady: false, unreadySince: world.now })
  if (kind === 'up') machine.isReady = true
  if (kind === 'break') machine.broken = world.asked.mode
  if (kind === 'mend') machine.broken = undefined
  // where a kube-proxy serves that node, and goes on
  if (kind === 'pin' && world.proxy.runs && machine.hasProxyPod) world.pin(machine.name, 'Standard')
  if (kind === 'cordon') machine.isCordoned = !machine.isCordoned
}

/** As long as a node is waited for. */
function passTime(world: World): void {
  world.now += 11 * MINUTE
  for (const machine of world.machines.values()) if (!machine.isReady) machine.isBehind = true
}

test('whatever happens, a node is served by one of the two, and all nodes come to the mode that is asked for', () => {
  fc.assert(
    fc.property(events, fc.integer({ min: 1, max: 3 }), (all, maxUnavailable) => {
      const world = new World(['a', 'b', 'c', 'd'], { maxUnavailable })
      for (const event of all) {
        happen(world, event)
        expect([...world.unserved(), ...world.faults], JSON.stringify(event)).toEqual([])
      }
      for (const machine of world.machines.values()) Object.assign(machine, { isReady: true, broken: undefined, isBehind: false })
      world.round()
      world.asked = { ...world.asked, retry: 'again' }
      world.settle()
      const { mode } = world.asked
      expect(new Set(Object.values(world.modes()))).toEqual(new Set([mode]))
      expect(world.default.mode).toBe(mode)
      expect([...world.overrides.values()].filter(({ isOurs }) => isOurs)).toEqual([])
      expect(world.proxy.runs).toBe(mode === 'Standard')
      expect(world.steps.at(-1)?.phase).toBe('Over')
    }),
    { numRuns: Number(process.env['RUNS'] ?? 2000) },
  )
})
