// SPDX-License-Identifier: Apache-2.0
/** Every version of the policies says of marked flows what it promises: asked of the plain evaluator. */
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { Evaluator } from '#lib/policy/evaluate.ts'
import { ANCHORS, clusterObjects, FAMILIES, LASTING, OTHERS, podAddress } from '../../../soak/cluster.ts'
import { MARKED_FLOWS, NEVER_ECHO, TRUTHS, type Truths } from '../../../soak/marks/marked-flows.ts'
import { podLabels, policyObjects, setObjects } from '../../../soak/changes/policies.ts'
import { Random } from '../../../soak/random.ts'
import { storeOf } from '../../support/build.ts'

type Snapshot = ReturnType<typeof storeOf>['snapshot']

interface Asked {
  readonly src: string
  readonly dst: string
  readonly port: number
  readonly protocol: number
}

/** By both ends, those that are pods. */
function isAllowed(world: Snapshot, { src, dst, port, protocol }: Asked): boolean {
  const [from, to] = [parseAddr(src), parseAddr(dst)]
  const packet = { src: from, dst: to, protocol, sport: 40_000, dport: port, icmp: undefined }
  const evaluator = new Evaluator(world)
  const podAt = (addr: string) => [...world.pods.values()].find(({ podIPs }) => podIPs.some((ip) => ip === addr))
  const [sender, receiver] = [podAt(from), podAt(to)]
  const out = sender === undefined ? 'allow' : evaluator.pod(sender, packet, { direction: 'egress' }).action
  const into = receiver === undefined ? 'allow' : evaluator.pod(receiver, packet, { direction: 'ingress' }).action
  return out === 'allow' && into === 'allow'
}

function worldOf(random: Random, truths: Truths): Snapshot {
  const labels = podLabels(random, LASTING, truths)
  const objects = [
    ...clusterObjects({ felix: {}, visitors: ['a-9'], labels }),
    ...policyObjects(random, truths),
    ...setObjects(random, truths),
  ]
  return storeOf(objects.map((object) => ({ ...object }))).snapshot
}

test.each(Array.from({ length: 40 }, (_, seed) => seed))('version %i', (seed) => {
  const random = new Random(seed)
  const truth = (): boolean => random.chance(0.5)
  const truths: Truths = { rules: truth(), egress: truth(), peer: truth(), net: truth(), gate: truth() }
  const world = worldOf(random, truths)
  for (const { id, from, address, ports, truth: of } of MARKED_FLOWS) {
    const src = podAddress(from, address.includes(':') ? 6 : 4)
    for (const port of ports)
      expect([id, port, isAllowed(world, { src, dst: address, port, protocol: 17 })]).toEqual([
        id,
        port,
        typeof of === 'boolean' ? of : truths[of],
      ])
  }
  for (const family of FAMILIES)
    for (const protocol of [6, 17]) {
      for (const pod of [...ANCHORS, ...OTHERS, 'a-9']) {
        const [src, dst] = [podAddress('shell-b', family), podAddress(pod, family)]
        expect(isAllowed(world, { src, dst, port: 8080, protocol })).toBe(true)
        expect(isAllowed(world, { src, dst, port: NEVER_ECHO, protocol })).toBe(false)
      }
      expect(
        isAllowed(world, { src: family === 4 ? '198.51.100.2' : '2001:db8:6464::2', dst: podAddress('a-1', family), port: 8080, protocol }),
      ).toBe(true)
    }
})

test('each truth has pairs', () => {
  expect(new Set(MARKED_FLOWS.map(({ truth }) => truth))).toEqual(new Set([...TRUTHS, true, false]))
})
