// SPDX-License-Identifier: Apache-2.0
/** Pods with one address: which of them a snapshot shows with it. Layer: test. */
import { beforeEach, describe, expect, test } from 'vitest'
import { formatAddr } from '#lib/base/ip.ts'
import { nameKey } from '#lib/model/ref.ts'
import { Store } from '#lib/store/store.ts'
import type { Sink } from '#lib/store/source.ts'
import { model, pod, type Manifest, type PodSpec } from '../../support/build.ts'

const IP = '10.0.0.5'

let store: Store
let sink: Sink
beforeEach(() => {
  store = new Store({ sources: ['test'] })
  sink = store.sink('test')
  sink.synced()
})

function put(...manifests: readonly Manifest[]): void {
  sink.apply(manifests.map((manifest) => ({ kind: 'upsert', object: model(manifest) })))
}

function drop(name: string): void {
  sink.apply([{ kind: 'delete', ref: { kind: 'Pod', namespace: 'default', name } }])
}

/** "a 10.0.0.5", and what a pod has lost: "b -10.0.0.5 default/a" */
function shown(): string[] {
  return [...store.snapshot.pods.values()]
    .map(({ name, podIPs, lost = [] }) =>
      [name, ...podIPs.map(formatAddr), ...lost.map(({ addr, to }) => `-${formatAddr(addr)} ${to}`)].join(' '),
    )
    .sort()
}

function changed(): string[] {
  return store.takeChanges().flatMap(({ before, after }) => {
    const one = after ?? before
    return one === undefined ? [] : [nameKey(one)]
  })
}

describe('of two pods with one address', () => {
  const rules: readonly (readonly [string, winner: PodSpec, loser: PodSpec])[] = [
    ['one that is not going has it, however old it is', { started: 1 }, { started: 2, terminating: true }],
    ['the younger one has it', { started: 2, uid: 'z' }, { started: 1, uid: 'a' }],
    ['one that has not been started yet is the younger one', { uid: 'z' }, { started: 9, uid: 'a' }],
    ['of those that are going the younger one has it', { started: 2, terminating: true }, { started: 1, terminating: true }],
    ['of one age the first uid has it', { started: 1, uid: 'a' }, { started: 1, uid: 'b' }],
    ['one that has finished has it never', { started: 1, terminating: true }, { started: 2, phase: 'Succeeded' }],
    ['one that has failed has it never', { started: 1, terminating: true }, { started: 2, phase: 'Failed' }],
    ['one of the network of its node has it never', { started: 1, terminating: true }, { started: 2, hostNetwork: true }],
  ]
  for (const [title, winner, loser] of rules)
    test.each([
      ['a', 'b', true],
      ['a', 'b', false],
      ['b', 'a', true],
      ['b', 'a', false],
    ] as const)(`${title} (winner %s, loser %s, winner comes first: %s)`, (win, lose, first) => {
      const pods = [pod(win, { ips: [IP], node: 'n1', ...winner }), pod(lose, { ips: [IP], node: 'n2', ...loser })]
      put(...(first ? pods : pods.reverse()))
      const contends = loser.phase === undefined && loser.hostNetwork === undefined
      expect(shown()).toEqual([`${win} ${IP}`, contends ? `${lose} -${IP} default/${win}` : `${lose} ${IP}`].sort())
      drop(win)
      expect(shown()).toEqual([`${lose} ${IP}`])
    })
})

test('a pod that loses its address, or gets it, has changed', () => {
  put(pod('a', { ips: [IP], started: 1 }))
  changed()
  put(pod('b', { ips: [IP], started: 2 }))
  expect(changed().sort()).toEqual(['default/a', 'default/b'])
  put(pod('b', { ips: [IP], started: 2, terminating: true }))
  expect(shown()).toEqual([`a ${IP}`, `b -${IP} default/a`])
  expect(changed().sort()).toEqual(['default/a', 'default/b'])
  put(pod('b', { ips: [IP], started: 2, phase: 'Succeeded' }))
  expect(changed()).toEqual(['default/b'])
  put(pod('b', { ips: [IP], started: 2, phase: 'Succeeded' }))
  expect(changed()).toEqual([])
})

test('each address of a pod is judged alone', () => {
  put(pod('a', { ips: [IP, 'fd00::5'], started: 1 }))
  put(pod('b', { ips: [IP], started: 2 }), pod('c', { ips: ['fd00::5'], started: 0 }))
  expect(shown()).toEqual([`a fd00::5 -${IP} default/b`, `b ${IP}`, 'c -fd00::5 default/a'])
  put(pod('b', { ips: ['10.0.0.6'], started: 2 }))
  expect(shown()).toEqual([`a ${IP} fd00::5`, 'b 10.0.0.6', 'c -fd00::5 default/a'])
})

test('of three pods the next one takes over, and the last knows the owner of the address', () => {
  put(pod('a', { ips: [IP], started: 1 }), pod('b', { ips: [IP], started: 2 }), pod('c', { ips: [IP], started: 3 }))
  expect(shown()).toEqual([`a -${IP} default/c`, `b -${IP} default/c`, `c ${IP}`])
  drop('c')
  expect(shown()).toEqual([`a -${IP} default/b`, `b ${IP}`])
  drop('a')
  drop('b')
  put(pod('d', { ips: [IP] }))
  expect(shown()).toEqual([`d ${IP}`])
})
