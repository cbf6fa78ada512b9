// SPDX-License-Identifier: Apache-2.0
/** Stories of a switch, phase by phase: which nodes are asked, what stops it, what the statuses say. Layer: test. */
import { describe, expect, test } from 'vitest'
import type { Observed } from '#operator/switch/observed.ts'
import { PROXY_COMMANDS } from '#operator/switch/proxy-command.ts'
import { proxyFound } from '#operator/switch/proxy-found.ts'
import { proxyState } from '#operator/switch/proxy-state.ts'
import { servicesState } from '#operator/switch/services-state.ts'
import type { AskedSwitch, Step } from '#operator/switch/situation.ts'
import { nextStep, situationOf } from '#operator/switch/step.ts'
import type { ComponentState } from '#lib/control/rollout.ts'
import { MINUTE, World } from './world.ts'

const NO_NODE = 'spec.nodeUpdateStrategy.canary: x is no node that has an agent'
const NAMES = ['a', 'b', 'c', 'd']

/** Phases as they follow each other, each with the nodes that it is about, until nothing is left to do. */
function story(world: World, most = 60): readonly string[] {
  const told: string[] = []
  for (let round = 0; round < most; round++) {
    const { phase, nodes, writes } = world.operate()
    const text = [phase, ...nodes].join(' ')
    if (told.at(-1) !== text) told.push(text)
    if (phase === 'Over' && writes.length === 0) break
    world.round()
  }
  return told
}

/** Phases as they follow each other while agents follow one after the other. */
function phasesOf(world: World): readonly string[] {
  const told: string[] = []
  const tell = ({ phase }: Step): void => {
    if (told.at(-1) !== phase) told.push(phase)
  }
  for (let step = world.operate(); step.phase !== 'Over' || told.length === 0; step = world.operate()) {
    tell(step)
    for (const one of world.machines.values()) {
      world.come(one)
      world.prove(one)
      tell(world.operate(0))
    }
  }
  return told
}

/** What the statuses say at this moment. */
function said(
  observed: Observed,
  asked: AskedSwitch,
): { readonly services: ComponentState; readonly proxy: ComponentState; readonly step: Step } {
  const situation = situationOf(observed, asked)
  const step = nextStep(situation)
  const commands = PROXY_COMMANDS.Generic
  return { step, services: servicesState(situation, step, commands), proxy: proxyState(situation, step, commands) }
}

const now = (world: World): ReturnType<typeof said> => said(world.observed(), world.asked)
const machine = (world: World, name: string) => world.machines.get(name) ?? world.join(name)
/** A world that is all in this mode. */
function settled(mode: 'BPF' | 'Standard', asked: Partial<AskedSwitch> = {}): World {
  const world = new World(NAMES, { ...asked, mode })
  world.settle()
  return world
}

const ask = (world: World, asked: Partial<AskedSwitch>): void => {
  world.asked = { ...world.asked, generation: world.asked.generation + 1, ...asked }
}

describe('from kube-proxy to us', () => {
  test('one node is first, the others follow, then the default, and kube-proxy last', () => {
    const world = settled('Standard')
    ask(world, { mode: 'BPF' })
    expect(story(world)).toEqual(['Canary a', 'Wave b', 'Wave c', 'Wave d', 'Default', 'Finish', 'Over'])
    expect(world.proxy.runs).toBe(false)
    expect(now(world).services).toEqual({ available: { reason: 'Serving', message: 'BPF mode on 4 of 4 nodes' } })
    expect(now(world).proxy.available).toEqual({ reason: 'KubeProxyStopped', message: 'kube-proxy is stopped' })
  })

  test.each([
    [2, ['Canary a', 'Wave b c', 'Wave d']],
    ['50%', ['Canary a', 'Wave b c', 'Wave d']],
    ['1%', ['Canary a', 'Wave b', 'Wave c', 'Wave d']],
    ['100%', ['Canary a', 'Wave b c d']],
  ])('as many at a time as maxUnavailable %j lets', (maxUnavailable, waves) => {
    const world = settled('Standard')
    ask(world, { mode: 'BPF', maxUnavailable })
    expect(story(world).slice(0, -3)).toEqual(waves)
  })

  test('nothing is written before the preflight has passed, and a node that was asked shows that it had', () => {
    const world = settled('Standard')
    ask(world, { mode: 'BPF', isPreflightPassed: false })
    expect(now(world).step).toMatchObject({ phase: 'Preflight', writes: [] })
    expect(now(world).services.unavailable).toEqual({
      reason: 'Preflight',
      message: 'to BPF mode, phase preflight; still to come: a, b, c, d',
    })
    ask(world, { isPreflightPassed: true })
    world.operate()
    ask(world, { isPreflightPassed: false })
    expect(now(world).step.phase).toBe('Canary')
  })

  test('the canary of the Installation is first; one that is no node is named, and nothing is asked', () => {
    const world = settled('Standard')
    ask(world, { mode: 'BPF', canary: 'c' })
    expect(story(world).slice(0, 2)).toEqual(['Canary c', 'Wave a'])
    const other = settled('Standard')
    ask(other, { mode: 'BPF', canary: 'x' })
    expect(now(other).step.writes).toEqual([])
    expect(now(other).services.degraded).toEqual({
      reason: 'CanaryMissing',
      message: NO_NODE,
    })
  })

  test('a cordoned node is last, and named', () => {
    const world = settled('Standard')
    machine(world, 'a').isCordoned = true
    ask(world, { mode: 'BPF' })
    expect(now(world).services.unavailable?.message).toBe('to BPF mode, phase canary: b; still to come: a, b, c, d; cordoned: a')
    expect(story(world).slice(0, 4)).toEqual(['Canary b', 'Wave c', 'Wave d', 'Wave a'])
  })

  test('the first node is one that the operator sees from outside', () => {
    const world = settled('Standard')
    machine(world, 'a').isOperators = true
    machine(world, 'b').isCordoned = true
    ask(world, { mode: 'BPF' })
    expect(story(world).slice(0, 4)).toEqual(['Canary c', 'Wave a', 'Wave d', 'Wave b'])
  })

  test('while agents are still to hear of the default, and of overrides that went, it is the finish that is told', () => {
    const world = settled('Standard')
    ask(world, { mode: 'BPF' })
    expect(phasesOf(world)).toEqual(['Canary', 'Wave', 'Default', 'Finish', 'Over'])
  })

  test('a canary that is no node is told before there is a switch, and holds up nothing', () => {
    const world = settled('Standard')
    ask(world, { canary: 'x' })
    expect(now(world).services).toEqual({ available: { reason: 'Serving', message: 'Standard mode on 4 of 4 nodes' }, notes: [NO_NODE] })
    ask(world, { mode: 'BPF', isPreflightPassed: false })
    expect(now(world).services).toMatchObject({ unavailable: { reason: 'Preflight' }, notes: [NO_NODE] })
    ask(world, { isPreflightPassed: true })
    // said once
    expect(now(world).services).not.toHaveProperty('notes')
    ask(world, { canary: 'b' })
    expect(now(world).services).not.toHaveProperty('notes')
  })

  test('a node that was away before the switch was asked has its time from then on', () => {
    const world = settled('Standard')
    Object.assign(machine(world, 'b'), { isReady: false, unreadySince: world.now - 20 * MINUTE })
    ask(world, { mode: 'BPF', askedAt: world.now })
    expect(story(world, 5)).toEqual(['Canary'])
    expect(now(world).services.unavailable?.message).toBe(
      'to BPF mode, phase canary; not ready, waits up to 600 s: b; still to come: a, c, d',
    )
    world.now += 10 * MINUTE
    expect(story(world)).toEqual(['Canary a', 'Wave c', 'Wave d', 'Default', 'Finish', 'Over'])
  })

  test('a node that is not ready stops all; after its time it is left out, and comes when it is back', () => {
    const world = settled('Standard')
    Object.assign(machine(world, 'b'), { isReady: false, unreadySince: world.now })
    ask(world, { mode: 'BPF' })
    expect(story(world, 5)).toEqual(['Canary'])
    expect(now(world).services.unavailable?.message).toBe(
      'to BPF mode, phase canary; not ready, waits up to 600 s: b; still to come: a, c, d',
    )
    world.now += 10 * MINUTE
    expect(story(world)).toEqual(['Canary a', 'Wave c', 'Wave d', 'Default', 'Finish', 'Over'])
    expect(now(world).services.available?.message).toBe('BPF mode on 3 of 4 nodes; left out, not ready for 600 s: b')
    expect(world.proxy.runs).toBe(false)
    machine(world, 'b').isReady = true
    world.settle()
    expect(world.modes()).toMatchObject({ b: 'BPF' })
  })

  test('a node that does not serve goes back alone; the others stay; it is tried again for a new generation', () => {
    const world = settled('Standard')
    machine(world, 'b').broken = 'BPF'
    ask(world, { mode: 'BPF' })
    expect(story(world, 12)).toEqual(['Canary a', 'Wave b', 'Wave'])
    expect(world.modes()).toEqual({ a: 'BPF', b: 'Standard', c: 'Standard', d: 'Standard' })
    expect(world.default.mode).toBe('Standard')
    const { services } = now(world)
    expect(services.degraded).toEqual({
      reason: 'ProofFailed',
      message:
        'b: no answer; such a node is tried again when the Installation changes, or its annotation operator.netplane.io/retry-switch',
    })
    expect(services.unavailable).toBe(services.degraded)
    machine(world, 'b').broken = undefined
    expect(story(world, 3)).toEqual(['Wave'])
    ask(world, {})
    expect(story(world)).toEqual(['Wave b', 'Wave c', 'Wave d', 'Default', 'Finish', 'Over'])
  })

  test('a node that is made anew under the name of one that went back is asked itself', () => {
    const world = settled('Standard')
    machine(world, 'b').broken = 'BPF'
    ask(world, { mode: 'BPF' })
    story(world, 12)
    expect(now(world).step.writes).toEqual([])
    const { uid } = world.remake(machine(world, 'b'))
    world.round()
    expect(now(world).services.degraded).toBeUndefined()
    expect(now(world).step.writes).toMatchObject([{ kind: 'override', node: 'b', mode: 'BPF', mark: { to: 'BPF', uid } }])
    expect(story(world)).toEqual(['Wave b', 'Wave c', 'Wave d', 'Default', 'Finish', 'Over'])
  })

  test('a node that is made anew under the name of one that was asked has a time of its own', () => {
    const world = settled('Standard')
    ask(world, { mode: 'BPF' })
    world.operate()
    world.now += 9 * MINUTE
    const { uid } = world.remake(machine(world, 'a'))
    const write = { kind: 'override', node: 'a', mode: 'BPF', mark: { to: 'BPF', at: world.now, uid } }
    expect(world.operate(1).writes).toContainEqual(write)
    world.now += 9 * MINUTE
    expect(world.operate(0).writes).not.toContainEqual(expect.objectContaining({ node: 'a' }))
    world.now += MINUTE
    expect(world.operate().writes).toMatchObject([{ node: 'a', mode: undefined, mark: { uid, failed: {} } }])
  })

  test('a node whose agent does not come to it in time goes back as well', () => {
    const world = settled('Standard')
    ask(world, { mode: 'BPF' })
    world.operate()
    world.now += 10 * MINUTE
    expect(world.operate().writes).toMatchObject([
      { kind: 'override', node: 'a', mode: undefined, mark: { failed: { reason: 'did not serve within 600 s' } } },
    ])
  })

  test('no node is given up for the time that the datastore is locked', () => {
    const world = settled('Standard')
    Object.assign(machine(world, 'b'), { isReady: false, unreadySince: world.now })
    ask(world, { mode: 'BPF' })
    const from = world.now
    world.now += 30 * MINUTE
    world.locks = [{ from, to: world.now }]
    expect(now(world).services.unavailable?.message).toContain('not ready, waits up to 600 s: b')
    machine(world, 'b').isReady = true
    expect(world.operate().nodes).toEqual(['a'])
    const [asked, minutes] = [world.now, (of: number) => of * MINUTE]
    world.now += minutes(9)
    world.locks = [...world.locks, { from: asked + minutes(2), to: asked + minutes(8) }]
    expect(world.operate().writes).toEqual([])
    world.now += minutes(6)
    expect(world.operate().writes).toEqual([])
    world.now += minutes(1)
    expect(world.operate().writes).toMatchObject([{ node: 'a', mark: { failed: { reason: 'did not serve within 600 s' } } }])
  })

  test('an agent’s word of an earlier configuration does not count', () => {
    const world = settled('Standard')
    ask(world, { mode: 'BPF', maxUnavailable: '100%' })
    story(world, 2)
    expect(Object.values(world.modes())).toEqual(['BPF', 'BPF', 'BPF', 'BPF'])
    // there and back before the agent of d looks
    const d = machine(world, 'd')
    const was = d.told
    world.write({ kind: 'override', node: 'd', mode: 'Standard', mark: undefined })
    world.write({ kind: 'override', node: 'd', mode: 'BPF', mark: { to: 'BPF', at: world.now } })
    expect(d.told).toBe(was)
    expect(now(world).step).toMatchObject({ phase: 'Wave', writes: [], nodes: ['d'] })
  })

  test('a node without a word of its agent keeps the default as it is', () => {
    const world = settled('Standard')
    world.join('e')
    ask(world, { mode: 'BPF', maxUnavailable: 4 })
    for (let round = 0; round < 5; round++) {
      world.operate()
      for (const one of world.machines.values())
        if (one.name !== 'e') {
          world.come(one)
          world.prove(one)
        }
    }
    expect(world.default.mode).toBe('Standard')
    expect(now(world).services.unavailable?.message).toBe('to BPF mode, phase wave; no word of the agent: e')
  })

  test('kube-proxy stays where the operator does not manage it, another does, or the platform keeps it', () => {
    const world = settled('Standard', { managesKubeProxy: false })
    ask(world, { mode: 'BPF' })
    world.settle()
    const observed = world.observed()
    const command = `kubectl -n kube-system patch daemonset kube-proxy --type merge -p '{"spec":{"template":{"spec":{"nodeSelector":{"netplane.io/kube-proxy":"disabled"}}}}}'`
    const message = `kube-proxy runs beside us; to stop it once services are Available: ${command}`
    expect(now(world).proxy).toEqual({ available: { reason: 'BesideKubeProxy', message } })
    const asked = { ...world.asked, managesKubeProxy: true }
    const managed = { ...observed, proxy: { ...observed.proxy, manager: 'Argo CD (x)', canBeChanged: false } }
    expect(said(managed, asked).step.writes).toEqual([])
    expect(said(managed, asked).proxy.degraded?.reason).toBe('ManagedByAnother')
    const printed = { ...observed, proxy: { ...observed.proxy, action: 'command' as const, canBeChanged: false } }
    expect(said(printed, asked).step.writes).toEqual([])
    expect(said(printed, asked).proxy.unavailable?.reason).toBe('StopByHand')
    const kept = { ...observed, proxy: { ...observed.proxy, action: 'keep' as const, canBeChanged: false } }
    expect(said(kept, asked).step.writes).toEqual([{ kind: 'default', mode: 'BPF' }])
    expect(said(kept, asked).proxy.available?.reason).toBe('BesideKubeProxy')
  })

  test('a default that another has set to Standard while kube-proxy is stopped is put back at once', () => {
    const world = settled('BPF')
    world.write({ kind: 'default', mode: 'Standard' })
    ask(world, { isPreflightPassed: false })
    expect(now(world).step).toMatchObject({ phase: 'Default', writes: [{ kind: 'default', mode: 'BPF' }] })
  })

  test('a default that says nothing is written as agents go by it', () => {
    const world = settled('BPF')
    world.default = { generation: 1, mode: undefined }
    ask(world, { mode: 'Standard' })
    expect(now(world).step.writes).toEqual([{ kind: 'default', mode: 'BPF' }])
  })

  test('a node that is pinned to Standard goes back there when it does not serve, as long as kube-proxy does', () => {
    const world = settled('BPF')
    world.pin('b', 'Standard')
    world.round()
    machine(world, 'b').broken = 'BPF'
    expect(world.operate().writes).toMatchObject([{ node: 'b', mode: undefined, mark: { to: 'BPF' } }])
    world.round()
    // kube-proxy is stopped: there is nowhere to go
    expect(world.operate().writes).toEqual([])
    expect(now(world).services.degraded?.message).toMatch(/^b: no answer/)
  })
})

describe('from us to kube-proxy', () => {
  test('kube-proxy is first, each node is held, then the default, and nodes one after the other', () => {
    const world = settled('BPF')
    ask(world, { mode: 'Standard' })
    expect(now(world).proxy.unavailable).toEqual({ reason: 'Starting', message: 'kube-proxy is started' })
    expect(story(world)).toEqual(['ProxyFirst', 'Hold a b c d', 'Default', 'Canary a', 'Wave b', 'Wave c', 'Wave d', 'Finish', 'Over'])
    expect(now(world).services.available?.message).toBe('Standard mode on 4 of 4 nodes')
    expect(now(world).proxy.available?.reason).toBe('KubeProxyServes')
  })

  test('the canary is over for good, also while its agent is still to hear that its override went', () => {
    const world = settled('BPF')
    ask(world, { mode: 'Standard' })
    expect(phasesOf(world)).toEqual(['ProxyFirst', 'Hold', 'Default', 'Canary', 'Wave', 'Finish', 'Over'])
    const named = settled('BPF')
    ask(named, { mode: 'Standard', canary: 'c' })
    expect(phasesOf(named)).toEqual(['ProxyFirst', 'Hold', 'Default', 'Canary', 'Wave', 'Finish', 'Over'])
  })

  test('no node is held before kube-proxy is ready on each, and seen by its agent', () => {
    const world = settled('BPF')
    ask(world, { mode: 'Standard' })
    world.operate()
    for (const one of world.machines.values()) if (one.name !== 'c') world.come(one)
    expect(now(world).step).toMatchObject({ phase: 'ProxyFirst', writes: [], nodes: ['c'] })
    world.serveProxy(machine(world, 'c'))
    expect(now(world).step.phase).toBe('ProxyFirst')
    world.follow(machine(world, 'c'))
    expect(now(world).step.phase).toBe('Hold')
  })

  test('an agent that says nothing of a kube-proxy that is ready is named in time, and so is one that says nothing', () => {
    const world = settled('BPF')
    world.join('e')
    ask(world, { mode: 'Standard' })
    world.operate()
    for (const one of world.machines.values())
      if (one.name === 'c') world.serveProxy(one)
      else if (one.name !== 'e') world.come(one)
    world.now += 9 * MINUTE
    expect(now(world).services).toMatchObject({ unavailable: { reason: 'ProxyFirst' } })
    expect(now(world).services.degraded).toBeUndefined()
    world.now += MINUTE
    const c = 'c: a kube-proxy has been ready for 600 s, and its rules do not have the services that the agent asks, in each family'
    const message = `${c}, e: its agent has said nothing for 600 s; see the agents' pods on these nodes, and their logs`
    expect(now(world).services.degraded).toEqual({ reason: 'AgentSilent', message })
    expect(now(world).services.unavailable).toEqual({ reason: 'AgentSilent', message })
    world.locks = [{ from: world.now - MINUTE, to: world.now }]
    expect(now(world).services.degraded).toBeUndefined()
    world.settle()
    expect(now(world).services.available?.message).toBe('Standard mode on 5 of 5 nodes')
    expect(now(world).services.degraded).toBeUndefined()
  })

  test('a node that kube-proxy does not serve goes back to us, and stays there', () => {
    const world = settled('BPF')
    machine(world, 'a').broken = 'Standard'
    ask(world, { mode: 'Standard' })
    expect(story(world, 15)).toEqual(['ProxyFirst', 'Hold a b c d', 'Default', 'Canary a', 'Canary'])
    expect(world.modes()).toEqual({ a: 'BPF', b: 'BPF', c: 'BPF', d: 'BPF' })
    expect(world.overrides.get('a')).toMatchObject({ mode: 'BPF', mark: { failed: { reason: 'no answer' } } })
  })

  test('a node that is away keeps what it has until it is back', () => {
    const world = settled('BPF')
    Object.assign(machine(world, 'b'), { isReady: false, unreadySince: world.now })
    world.now += 20 * MINUTE
    ask(world, { mode: 'Standard' })
    story(world)
    expect(world.overrides.get('b')?.mode).toBe('BPF')
    machine(world, 'b').isReady = true
    world.settle()
    expect(world.modes()).toMatchObject({ b: 'Standard' })
    expect(world.overrides.size).toBe(0)
  })

  test.each([
    ['stopped', false, /is stopped: start it: kubectl .*"netplane.io\/kube-proxy":null.*; or set kubeProxyManagement to Enabled$/],
    ['stopped-by-hand', true, /is stopped: take away the node selector that no node has, or set linuxDataplane to BPF$/],
    ['absent', true, /and there is none: install it, or set linuxDataplane to BPF$/],
  ] as const)(
    'where kube-proxy is %s and not ours to start nothing is done, and it is told what to do',
    (state, managesKubeProxy, text) => {
      const world = settled('BPF')
      const observed = { ...world.observed(), proxy: { ...world.observed().proxy, state } }
      const { step, services, proxy } = said(observed, { ...world.asked, mode: 'Standard', managesKubeProxy })
      expect(step).toMatchObject({ phase: 'Blocked', writes: [] })
      expect(services.degraded?.reason).toBe('KubeProxyMissing')
      expect(services.degraded?.message).toMatch(text)
      expect(proxy.degraded?.reason).toBe('KubeProxyMissing')
    },
  )
})

describe('a kube-proxy that is in no pod', () => {
  /** As agents see it; undefined: they have not said anything. */
  function seen(world: World, sight: 'Present' | 'Absent' | undefined): Observed {
    const input = { action: 'command', daemonSet: undefined, network: undefined, pods: [], nodes: [] } as const
    const observed = world.observed()
    const nodes = observed.nodes.map(({ status, ...node }) => ({ ...node, status: status && { ...status, kubeProxy: sight } }))
    return { ...observed, nodes, proxy: proxyFound({ ...input, sight: nodes.map(() => sight) }) }
  }

  test('goes on beside us where agents see it, and nodes may go back to it', () => {
    const world = settled('BPF', { managesKubeProxy: false })
    expect(said(seen(world, 'Present'), world.asked).proxy.available?.reason).toBe('BesideKubeProxy')
    ask(world, { mode: 'Standard' })
    expect(said(seen(world, 'Present'), world.asked).step).toMatchObject({ phase: 'Hold', nodes: NAMES })
  })

  test('is missing only once an agent has said so, and the platform’s own command is told', () => {
    const world = settled('BPF')
    ask(world, { mode: 'Standard' })
    expect(said(seen(world, undefined), world.asked)).toMatchObject({
      step: { phase: 'ProxyFirst', writes: [] },
      services: { progressing: { reason: 'ProxyFirst' } },
      proxy: { progressing: { reason: 'Starting', message: 'no agent has said yet whether kube-proxy runs' } },
    })
    const situation = situationOf(seen(world, 'Absent'), world.asked)
    const { degraded } = servicesState(situation, nextStep(situation), PROXY_COMMANDS.MKE)
    const start = 'set kube_proxy_mode = "iptables" in the configuration of MKE'
    const message = `in Standard mode kube-proxy serves, and neither a pod nor an agent shows one: ${start}; or set linuxDataplane to BPF`
    expect(degraded).toEqual({ reason: 'KubeProxyMissing', message })
  })
})

test('a switch that is turned round half-way comes back from where it is', () => {
  const world = settled('Standard')
  ask(world, { mode: 'BPF' })
  story(world, 2)
  expect(world.modes()).toEqual({ a: 'BPF', b: 'BPF', c: 'Standard', d: 'Standard' })
  ask(world, { mode: 'Standard' })
  expect(story(world)).toEqual(['Wave a', 'Wave b', 'Finish', 'Over'])
  expect(world.modes()).toEqual({ a: 'Standard', b: 'Standard', c: 'Standard', d: 'Standard' })
})

test('messages name ten nodes, and count the others', () => {
  const names = Array.from({ length: 14 }, (_, at) => `n${String(at + 10)}`)
  const world = new World(names, { mode: 'Standard' })
  world.settle()
  for (const name of names) machine(world, name).broken = 'BPF'
  ask(world, { mode: 'BPF', maxUnavailable: '100%' })
  expect(now(world).services.unavailable?.message).toMatch(/^to BPF mode, phase canary: n10; still to come: (n\d\d, ){9}n19 and 4 more$/)
})

test('nodes of a new installation are waited for until each is ready, also where agents have proven the mode before', () => {
  const world = settled('Standard')
  const begun = world.now
  world.now += MINUTE
  for (const name of NAMES) {
    world.prove(machine(world, name))
    Object.assign(machine(world, name), { isReady: false, unreadySince: begun })
  }
  const waits = { reason: 'WaitsForNodes', message: 'not ready, waits up to 600 s: a, b, c, d' }
  expect(now(world).services).toEqual({ unavailable: waits, progressing: waits })
  for (const name of ['a', 'b', 'c']) machine(world, name).isReady = true
  expect(now(world).services.progressing?.message).toBe('not ready, waits up to 600 s: d')
  world.now += 10 * MINUTE
  expect(now(world).services.progressing?.message).toBe('left out, not ready for 600 s: d')
  machine(world, 'd').isReady = true
  expect(now(world).services).toEqual({ available: { reason: 'Serving', message: 'Standard mode on 4 of 4 nodes' } })
})

test('a node that has served and goes away does not count against it, and is named', () => {
  const world = settled('Standard')
  Object.assign(machine(world, 'b'), { isReady: false, unreadySince: world.now })
  expect(now(world).services).toEqual({
    available: { reason: 'Serving', message: 'Standard mode on 3 of 4 nodes; not ready, waits up to 600 s: b' },
  })
})

test('a node that joins where all is done is waited for, and one that leaves is not', () => {
  const world = settled('BPF')
  machine(world, 'e')
  expect(now(world).services.unavailable).toEqual({ reason: 'WaitsForNodes', message: 'no word of the agent: e' })
  world.settle()
  expect(now(world).services.available?.message).toBe('BPF mode on 5 of 5 nodes')
  world.machines.delete('e')
  expect(now(world).services.available?.message).toBe('BPF mode on 4 of 4 nodes')
})
