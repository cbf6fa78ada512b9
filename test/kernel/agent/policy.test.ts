// SPDX-License-Identifier: Apache-2.0
/** Policy in a whole agent: what it has in the kernel, as policies, labels and agents come and go. Layer: test. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BpfMap } from '#native'
import { FAILSAFE_PORTS } from '#lib/base/bpf-constants.ts'
import { parseAddr } from '#lib/base/ip.ts'
import { NO_IDENTITY_OF_OURS } from '#agent/compile/policy/identities/identities.ts'
import { NO_SET } from '#agent/compile/policy/tables.ts'
import { catalogue, type MapDefinition } from '#agent/maps/catalogue.ts'
import type { AddrInfo } from '#agent/maps/shapes.ts'
import { decodeBytes, encodeBytes } from '#agent/maps/byte-rows.ts'
import { bindDeclared, builtObject } from '../../support/compiled.ts'
import type { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { labelled, manyPeers, onlyFrom, hostEndpoint, globalPolicy } from './manifests.ts'
import { makeNode, PINS, plug, POD_A, POD_B, rows } from './node.ts'

const { btf } = builtObject('tc')
const NO_IDENTITY = NO_IDENTITY_OF_OURS.id
const SETS = ['np_rules', 'np_bits', 'np_ports'] as const

let machine: ScratchNode

beforeEach(async () => {
  machine = await makeNode()
})

afterEach(async () => {
  await machine[Symbol.asyncDispose]()
})

function read<K, V>(definition: MapDefinition<K, V>, key: K): V | undefined {
  const codecs = bindDeclared(definition, btf)
  const map = BpfMap.openPin(machine.path(`${PINS}/maps/${definition.name}`))
  const value = map.lookup(encodeBytes(codecs.key, key))
  map.close()
  return value === undefined ? undefined : decodeBytes(codecs.value, value)
}

const info = (addr: string): AddrInfo | undefined => read(catalogue.np_addrs, parseAddr(addr))
const epoch = (): number => read(catalogue.np_state, 0)?.epoch ?? -1
const sizes = (): Promise<number[]> => Promise.all(SETS.map((map) => rows(machine, map)))

describe('a policy for a local pod', () => {
  beforeEach(() => {
    machine.put('policy.json', [onlyFrom('web', { app: 'web' }, { app: 'client' })])
    machine.put('pods.json', [
      labelled('a', '10.1.1.5', { node: 'n1', labels: { app: 'web' } }),
      labelled('far', '10.1.2.7', { node: 'n2', labels: { app: 'client' } }),
      labelled('other', '10.1.2.8', { node: 'n2', labels: { app: 'other' } }),
    ])
  })

  test('is in force when the agent says ready [once]', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    expect(info('10.1.1.5')).toMatchObject({ kind: 1, egress: NO_SET, staged_egress: NO_SET })
    expect(info('10.1.1.5')?.ifindex).toBeGreaterThan(0)
    expect(info('10.1.1.5')?.ingress).not.toBe(NO_SET)
    expect(info('10.1.1.5')?.staged_ingress).toBe(info('10.1.1.5')?.ingress)
    expect(info('10.1.2.7')).toMatchObject({ kind: 0, ingress: NO_SET })
    expect(info('10.1.2.7')?.identity).not.toBe(NO_IDENTITY)
    expect(info('10.1.2.8')).toMatchObject({ kind: 0, identity: NO_IDENTITY })
    expect((await sizes()).every((size) => size > 0)).toBe(true)
  })

  test('stays as it is over SIGKILL and restart: nothing is written, no flow is judged again [once]', async () => {
    const first = machine.agent()
    await first.event('dataplane.ready')
    const before = [info('10.1.1.5'), await sizes(), epoch()]
    await first.kill()
    const second = machine.agent()
    expect(await second.event('dataplane.adopted')).toMatchObject({ written: {} })
    await second.event('dataplane.ready')
    expect([info('10.1.1.5'), await sizes(), epoch()]).toEqual(before)
  })

  test('follows labels, and flows are judged again', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    const before = { epoch: epoch(), identity: info('10.1.2.7')?.identity, sizes: await sizes() }
    machine.put('more.json', [labelled('new', '10.1.2.9', { node: 'n2', labels: { app: 'client' } })])
    await agent.until('the newcomer', () => info('10.1.2.9')?.identity === before.identity)
    expect(await sizes()).toEqual(before.sizes)
    machine.put('more.json', [labelled('new', '10.1.2.9', { node: 'n2', labels: { app: 'other' } })])
    await agent.until('its other identity', () => info('10.1.2.9')?.identity === NO_IDENTITY)
    await agent.until('the epoch', () => epoch() > before.epoch)
    expect(await sizes()).toEqual(before.sizes)
  })

  test('the rows of a policy go with it', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    machine.drop('policy.json')
    await agent.until('the pod to be open', () => info('10.1.1.5')?.ingress === NO_SET)
    await expect.poll(sizes).toEqual([0, 0, 0])
    expect(info('10.1.1.5')).toMatchObject({ kind: 1, identity: NO_IDENTITY })
  })

  test('that changed while no agent ran is put right by the next one [once]', async () => {
    const first = machine.agent()
    await first.event('dataplane.ready')
    const before = { ingress: info('10.1.1.5')?.ingress, epoch: epoch() }
    await first.kill()
    machine.put('policy.json', [onlyFrom('web', { app: 'web' }, { app: 'other' })])
    const second = machine.agent()
    await second.event('dataplane.ready')
    expect(info('10.1.1.5')?.ingress).not.toBe(before.ingress)
    expect([info('10.1.2.7')?.identity, info('10.1.2.8')?.identity === NO_IDENTITY]).toEqual([NO_IDENTITY, false])
    await second.until('the epoch', () => epoch() > before.epoch)
    await expect.poll(() => rows(machine, 'np_rules')).toBe(2)
  })

  test('that is bad by now stays as it was, also for the next agent [once]', async () => {
    const first = machine.agent()
    await first.event('dataplane.ready')
    const before = info('10.1.1.5')
    machine.put('policy.json', [{ ...onlyFrom('web', { app: 'web' }, { app: 'client' }), spec: { podSelector: {}, ingress: 'anybody' } }])
    await first.event('object.rejected')
    const said = await first.event('policy.last-good')
    expect(said).toMatchObject({ policy: 'KubernetesNetworkPolicy/default/web' })
    await first.kill()
    const second = machine.agent()
    expect(await second.event('policy.last-good')).toMatchObject({ reason: said['reason'] })
    expect(await second.event('dataplane.adopted')).toMatchObject({ written: {} })
    await second.event('dataplane.ready')
    expect(info('10.1.1.5')).toEqual(before)
    expect(second.events('object.rejected')).toHaveLength(1)
    machine.put('policy.json', [onlyFrom('web', { app: 'nobody' }, {})])
    await second.until('the pod to be open', () => info('10.1.1.5')?.ingress === NO_SET)
  })

  test('a new pod has its rules from the first moment on [once]', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    const map = BpfMap.openPin(machine.path(`${PINS}/maps/np_addrs`))
    const codecs = bindDeclared(catalogue.np_addrs, btf)
    const key = encodeBytes(codecs.key, parseAddr('10.1.1.6'))
    plug(machine, POD_B)
    machine.put('more.json', [labelled('b', '10.1.1.6', { node: 'n1', labels: { app: 'web' } })])
    let first: AddrInfo | undefined
    await agent.until('the pod', () => {
      const value = map.lookup(key)
      first ??= value === undefined ? undefined : decodeBytes(codecs.value, value)
      return first !== undefined
    })
    map.close()
    expect(first).toMatchObject({ kind: 1, ingress: info('10.1.1.5')?.ingress })
  })
})

test('policies of one namespace that would fill the tables shut out no other namespace', async () => {
  machine.put('pods.json', [
    labelled('a', '10.1.1.5', { node: 'n1', labels: { app: 'web' } }),
    ...[6, 7, 8].map((at) => labelled(`bad-${at}`, `10.1.1.${at}`, { node: 'n1', namespace: 'bad', labels: { app: `a${at}` } })),
  ])
  const agent = machine.agent()
  await agent.event('dataplane.ready')
  // 97,800 rules and as many prefixes: a table has 65,536
  machine.put(
    'bad.json',
    [6, 7, 8].map((at) => manyPeers('bad', `a${at}`, { count: 16_300, net: at })),
  )
  await agent.until('their pods to be closed', () => (info('10.1.1.6')?.ingress ?? NO_SET) !== NO_SET)
  expect(info('10.1.1.6')?.egress).toBe(info('10.1.1.8')?.ingress)
  expect(await agent.event('policy.no-room')).toMatchObject({ policy: 'KubernetesNetworkPolicy/bad/a6' })
  machine.put('policy.json', [onlyFrom('web', { app: 'web' }, { app: 'client' })])
  await agent.until('a deny of another namespace', () => (info('10.1.1.5')?.ingress ?? NO_SET) !== NO_SET)
  expect(await rows(machine, 'np_rules')).toBe(1 + 2)
  machine.put('bad.json', [manyPeers('bad', 'a6', { count: 2, net: 1 })])
  await agent.event('policy.recovered')
  await agent.until('their own rules', () => info('10.1.1.6')?.ingress !== info('10.1.1.6')?.egress)
  await expect.poll(() => rows(machine, 'np_rules')).toBe(2 + 2 * 3)
  expect(agent.events('apply.failed')).toEqual([])
})

describe('of two pods with one address [once]', () => {
  /** `seconds` after a time: when the pod was started, and when it was asked to go */
  const at = (seconds: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toISOString()
  const one = (name: string, app: string, of: { readonly started: number; readonly node?: string; readonly goes?: boolean }): object => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { app }, ...(of.goes === true ? { deletionTimestamp: at(9) } : {}) },
    spec: { nodeName: of.node ?? 'n1', containers: [{ name: 'c', image: 'i' }] },
    status: { phase: 'Running', startTime: at(of.started), podIP: '10.1.1.5', podIPs: [{ ip: '10.1.1.5' }] },
  })
  const deviceOf = (name: string): number => Number(machine.sh(`ip -o link show ${name} | cut -d: -f1`))

  beforeEach(() => {
    machine.put('policy.json', [onlyFrom('web', { app: 'web' }, { app: 'client' }), onlyFrom('asker', { app: 'other' }, { app: 'client' })])
    plug(machine, POD_B)
    machine.put('other.json', [labelled('other', '10.1.1.8', { node: 'n1', labels: { app: 'other' } })])
  })

  test.each([
    [
      { name: 'a', device: POD_A },
      { name: 'b', device: POD_B },
    ],
    [
      { name: 'b', device: POD_B },
      { name: 'a', device: POD_A },
    ],
  ])('$name, which stays, has device, rules and labels until it is gone', async (stays, goes) => {
    const going = one(goes.name, 'client', { started: 2, goes: true })
    machine.put('pods.json', [one(stays.name, 'web', { started: 1 }), going])
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    expect(info('10.1.1.5')).toMatchObject({ kind: 1, ifindex: deviceOf(stays.device), identity: NO_IDENTITY })
    expect(info('10.1.1.5')?.ingress).not.toBe(NO_SET)
    machine.put('pods.json', [going])
    await agent.until('the other one', () => info('10.1.1.5')?.ifindex === deviceOf(goes.device))
    await agent.until('its rules', () => info('10.1.1.5')?.ingress === NO_SET)
    expect(info('10.1.1.5')?.identity).not.toBe(NO_IDENTITY)
  })

  test('the younger one has it on another node: this node delivers nothing to its own', async () => {
    const own = one('a', 'web', { started: 1 })
    machine.put('pods.json', [own, one('b', 'client', { started: 2, node: 'n2' })])
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    expect(info('10.1.1.5')).toMatchObject({ kind: 0, ingress: NO_SET })
    expect(info('10.1.1.5')?.identity).not.toBe(NO_IDENTITY)
    machine.put('pods.json', [own, one('b', 'client', { started: 2, node: 'n2', goes: true })])
    await agent.until('its own', () => info('10.1.1.5')?.ifindex === deviceOf(POD_A))
    expect(info('10.1.1.5')?.ingress).not.toBe(NO_SET)
    expect(info('10.1.1.5')?.identity).toBe(NO_IDENTITY)
  })
})

describe('host endpoints', () => {
  test('of devices, and of the node itself [once]', async () => {
    machine.put('hosts.json', [
      hostEndpoint('named', { node: 'n1', interfaceName: 'eth0' }),
      hostEndpoint('all', { node: 'n1', interfaceName: '*' }),
      hostEndpoint('elsewhere', { node: 'n2', interfaceName: 'eth9' }),
      hostEndpoint('stray', { node: 'n1', interfaceName: 'eht0' }),
      globalPolicy('open', { selector: 'has(host)', types: ['Ingress'], ingress: [{ action: 'Allow' }] }),
    ])
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    expect(await agent.event('host-endpoint.unmatched')).toMatchObject({ endpoint: 'HostEndpoint/stray' })
    expect(agent.events('host-endpoint.unmatched')).toHaveLength(1)
    const ifindex = Number(machine.sh('ip -o link show eth0 | cut -d: -f1'))
    const device = read(catalogue.np_hosts, { ifindex, view: 0 })
    expect(device?.normal_ingress).not.toBe(NO_SET)
    expect(device?.untracked_ingress).toBe(NO_SET)
    expect(read(catalogue.np_hosts, { ifindex: 0, view: 0 })?.normal_egress).not.toBe(NO_SET)
    expect(await rows(machine, 'np_hosts')).toBe(2)
    expect(read(catalogue.np_untracked, ifindex)).toBe(NO_SET)
    const scope = { doNotTrack: true, applyOnForward: true }
    machine.put('early.json', [
      globalPolicy('early', { selector: 'has(host)', ...scope, types: ['Ingress'], ingress: [{ action: 'Deny' }] }),
    ])
    await agent.until('the set that XDP asks', () => read(catalogue.np_untracked, ifindex) !== NO_SET)
    expect(read(catalogue.np_untracked, ifindex)).toBe(read(catalogue.np_hosts, { ifindex, view: 0 })?.untracked_ingress)
    machine.drop('early.json')
    machine.drop('hosts.json')
    await expect.poll(() => rows(machine, 'np_hosts')).toBe(0)
    await agent.until('no set for XDP', () => read(catalogue.np_untracked, ifindex) === NO_SET)
  })

  test('have ports that are never cut', async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    expect(await rows(machine, 'np_failsafes'), 'each port for both families').toBe(36)
    expect(read(catalogue.np_spared, 22)).toBe(1)
    expect(read(catalogue.np_spared, FAILSAFE_PORTS + (6443 % FAILSAFE_PORTS))).toBe(1)
    expect([read(catalogue.np_spared, 80), read(catalogue.np_spared, FAILSAFE_PORTS + 22)]).toEqual([0, 0])
  })
})
