// SPDX-License-Identifier: Apache-2.0
/** What answers of nodes come to. Layer: test. */
import { expect, test } from 'vitest'
import { describe, finding, type Finding } from '#lib/preflight/findings.ts'
import type { PreflightResults } from '#lib/preflight/results.ts'
import { verdictOf, withoutFinding } from '#operator/preflight/verdict.ts'

function results(more: Partial<PreflightResults> = {}): PreflightResults {
  return { findings: new Map(), facts: new Map(), cut: new Map(), waiting: [], failed: new Map(), apart: new Map(), ...more }
}

const BLOCKING = finding('jit-off')
const found = (...entries: readonly (readonly [string, readonly Finding[]])[]) => ({ findings: new Map(entries) })

test('nodes that have not answered are waited for by name', () => {
  const { isPassed, state } = verdictOf(
    { run: '1', tries: 1, results: results({ waiting: ['a', 'b'] }), silent: [], unknown: [], isOver: false },
    [],
  )
  expect(isPassed).toBe(false)
  expect(state.progressing?.message).toBe('0 nodes have answered; waiting for a, b')
  expect(state.unavailable).toEqual(state.progressing)
})

test('a node whose probe failed is waited for as well', () => {
  const failed = new Map([['a', 'kernel: ErrImagePull']])
  const { state } = verdictOf({ run: '1', tries: 1, results: results({ failed }), silent: [], unknown: [], isOver: false }, [])
  expect(state.progressing?.message).toBe('0 nodes have answered; waiting for a')
})

test('a port that is blocked between all nodes is one sentence, and so is a trouble of which each has another count', () => {
  const names = Array.from({ length: 50 }, (_, at) => `n${String(at + 10)}`)
  const lostOf = (node: string): readonly Finding[] =>
    names.filter((name) => name !== node).map((peer) => finding('vxlan-lost-from', peer, `10.0.0.${peer.slice(1)}`, 4789))
  const all = names.map((name, at) => [name, [...lostOf(name), finding('ipvs-services', at % 3)]] as const)
  const { state } = verdictOf({ run: '1', tries: 1, results: results(found(...all)), silent: [], unknown: [], isOver: true }, [])
  const ten = (prefix: string): string =>
    `${names
      .slice(0, 10)
      .map((name) => prefix + name.slice(1))
      .join(', ')} and 40 more`
  expect(state.degraded?.message.split('. ')).toEqual([
    `${ten('n')}: VXLAN from ${ten('n')} to here is lost (UDP port 4789 of ${ten('10.0.0.')}); let the network between the nodes carry UDP port 4789 both ways`,
    expect.stringContaining(`${ten('n')}: the kernel serves 0, 1, 2 services by IPVS; `),
  ])
  const two = [finding('vxlan-lost-from', 'b', '10.0.0.2', 4789), finding('vxlan-lost-from', 'b', '10.0.0.2', 4790)]
  const ports = verdictOf({ run: '1', tries: 1, results: results(found(['a', two])), silent: [], unknown: [], isOver: true }, [])
  expect(ports.state.degraded?.message.split('. ')).toHaveLength(2)
})

test('warnings do not hold up, and are told with their nodes', () => {
  const { isPassed, state } = verdictOf(
    { run: '1', tries: 1, results: results(found(['a', [BLOCKING]], ['b', [BLOCKING]])), silent: [], unknown: [], isOver: true },
    [],
  )
  expect(isPassed).toBe(true)
  expect(state.available?.reason).toBe('Warnings')
  expect(state.available?.message).toMatch(/^a, b: the kernel interprets programs/)
})

test('what blocks holds up at once, all of it, each once with the nodes that have it', () => {
  const refused = finding('endpoint-refused', '10.0.0.1:6443')
  const { isPassed, state } = verdictOf(
    {
      run: '1',
      tries: 1,
      results: results({ ...found(['a', [refused]], ['b', [refused, BLOCKING]]), waiting: ['c'] }),
      silent: [],
      unknown: [],
      isOver: false,
    },
    [finding('windows-nodes', 'w')],
  )
  expect(isPassed).toBe(false)
  expect(state.degraded?.reason).toBe('Blocked')
  expect(state.degraded?.message).toMatch(/^nodes of Windows .*: w; .*\. a, b: 10\.0\.0\.1:6443 refuses connections; .*\. warning: b: /)
  expect(state.progressing?.message).toBe('2 nodes have answered; waiting for c')
})

test('a probe that cannot run is told with its reason', () => {
  const { isPassed, state } = verdictOf(
    {
      run: '1',
      tries: 1,
      results: results({ failed: new Map([['a', 'kernel: ImagePullBackOff']]) }),
      silent: [],
      unknown: [],
      isOver: false,
    },
    [],
  )
  expect(isPassed).toBe(false)
  expect(state.degraded).toEqual({ reason: 'ProbeFailed', message: 'a: kernel: ImagePullBackOff' })
})

test('nodes that were not asked, and findings that had no room, are told', () => {
  const { isPassed, state } = verdictOf(
    { run: '1', tries: 1, results: results({ cut: new Map([['a', 3]]) }), silent: ['z'], unknown: [], isOver: true },
    [],
  )
  expect(isPassed).toBe(true)
  expect(state.available?.message).toBe('3 more findings on a. not asked, as their kubelets say nothing: z')
})

test('a message of many findings has whole sentences and ends within its bound', () => {
  const many = Array.from({ length: 400 }, (_, at) => finding('endpoint-refused', `10.0.${at >> 8}.${at & 255}:6443 ${'x'.repeat(150)}`))
  const { state } = verdictOf({ run: '1', tries: 1, results: results(found(['a', many])), silent: [], unknown: [], isOver: true }, [])
  expect(state.degraded?.message.length).toBeLessThan(32_768)
  expect(state.degraded?.message).toMatch(/listens there\. And \d+ more$/)
})

test('a warning of what was done since goes, and the others stay', () => {
  const proxy = finding('proxy-runs', 'DaemonSet kube-system/kube-proxy')
  const of = (...cluster: readonly Finding[]) =>
    verdictOf({ run: '1', tries: 1, results: results(found(['a', [BLOCKING]])), silent: [], unknown: [], isOver: true }, cluster).state
  expect(withoutFinding(of(proxy), proxy)).toEqual(of())
  const alone = { available: { reason: 'Warnings', message: describe(proxy) } }
  expect(withoutFinding(alone, proxy)).toEqual({ available: { reason: 'Passed', message: 'nothing is in the way' } })
  expect(withoutFinding(of(), proxy)).toEqual(of())
})
