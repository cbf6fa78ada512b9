// SPDX-License-Identifier: Apache-2.0
/** The policies of a packet case in the maps: compiled, changed step by step, and named when a flow tells by which
 * rule it is let be. Layer: testkit. */
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import { NO_SET } from '#agent/compile/policy/tables.ts'
import type { EndValue, HostValue, PolicyStep } from '#agent/compile/policy/tables.ts'
import type { PolicyUpdate } from '#agent/compile/policy/policy-update.ts'
import type { MapDefinition } from '#agent/maps/catalogue.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { AddrInfo, nodeState } from '#agent/maps/shapes.ts'
import type { ShapeType } from '#agent/maps/field-kinds.ts'
import { parseAddr } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import type { Labels } from '#lib/model/labels.ts'
import type { Policy } from '#lib/model/policy.ts'
import { refText } from '#lib/model/ref.ts'
import { selects } from '#lib/model/selector/selector.ts'
import type { Device } from '#agent/dataplane/host/devices.ts'
import { HostEndpointRules } from '#agent/dataplane/policy/host-endpoint-rules.ts'
import type { BpfMap } from '#native'
import { ifindexOf } from '#native'
import { addrInfo } from './addr-info.ts'
import type { Loaded } from './objects.ts'
import { KeptMap, type Rows } from './kept-map.ts'
import { PolicyMaps } from './policy-maps.ts'
import { devices, families } from './cluster.ts'
import type { Family } from './cluster.ts'

/** Pods that policies may mean, by their label "name"; those of this node are under policy. */
export const PODS = {
  pod: { of: (f: Family) => f.pod, local: true },
  second: { of: (f: Family) => f.secondPod, local: true },
  masked: { of: (f: Family) => f.maskedPod, local: true },
  remote: { of: (f: Family) => f.remotePod, local: false },
} as const

/** Host endpoints, there where a policy means them: of the device that test runs happen on and of the node's own
 * processes; of the underlay. */
export const HOST = 'host'
export const UNDERLAY = 'underlay'
const HOSTS = { [HOST]: '*', [UNDERLAY]: devices.underlay.name } as const

type State = ShapeType<typeof nodeState>
type Policies = readonly Policy[]
type AddrMap = KeptMap<Addr, AddrInfo>
const NOTHING: EndValue = { identity: 0, ingress: NO_SET, egress: NO_SET, stagedIngress: NO_SET, stagedEgress: NO_SET }

/** Maps of any kind. */
interface Kept {
  readonly map: BpfMap
  rows: Rows<unknown>
  flush(): void
}

/** One list of policies, behind those before it. Lists are compared by identity: no code changes one. */
interface World {
  readonly path: readonly Policies[]
  /** of each map */
  readonly rows: readonly Rows<unknown>[]
  /** those that it changes; undefined: one that goes */
  readonly ends: readonly (readonly [Addr, EndValue | undefined])[]
  readonly next: WeakMap<Policies, World>
}

/** The compiler, and what it is at. */
interface Compiling {
  readonly compiler: PolicyCompiler
  readonly rules: HostEndpointRules
  at: World
}

export class PacketPolicy {
  readonly #kept: Kept[] = []
  readonly #maps: PolicyMaps
  readonly #addrs: AddrMap
  readonly #state: KeptMap<number, State>
  readonly #hosts
  readonly #untracked
  readonly #nothing: World
  #world: World
  #compiling: Compiling

  /** Beside its own maps it changes these, which the caller writes. */
  constructor(loaded: Loaded, { addrs, state }: { readonly addrs: AddrMap; readonly state: KeptMap<number, State> }) {
    const keep = <K, V>(definition: MapDefinition<K, V>, gone?: V): KeptMap<K, V> => {
      const map = new KeptMap(loaded, definition, gone)
      this.#kept.push(map)
      return map
    }
    this.#maps = new PolicyMaps(loaded, (definition) => keep(definition))
    this.#hosts = keep(catalogue.np_hosts)
    this.#untracked = keep(catalogue.np_untracked, NO_SET)
    this.#addrs = addrs
    this.#state = state
    this.#nothing = { path: [], rows: this.#kept.map(({ rows }) => rows), ends: [], next: new WeakMap() }
    this.#world = this.#nothing
    this.#compiling = { compiler: new PolicyCompiler(), rules: new HostEndpointRules(), at: this.#nothing }
  }

  /** Whatever was there goes. Without policies there is nothing in the maps. */
  start(policies: Policies): void {
    this.#world = this.#nothing
    this.#go(policies)
  }

  /** `next`: flows that are there are asked about again. */
  change(policies: Policies, next: boolean): void {
    this.#go(policies)
    const state = this.#state.get(0)
    if (next && state !== undefined) this.#state.set(0, { ...state, epoch: state.epoch + 1 })
  }

  /** "allow" policies have one name, their rules another each; '' for 0. */
  ruleName(number: number): string {
    return number === 0 ? '' : (this.#compilingAt(this.#world).compiler.ruleName(number) ?? `rule ${number}`)
  }

  close(): void {
    for (const { map } of this.#kept) map.close()
  }

  #go(policies: Policies): void {
    this.#world = this.#nextOf(this.#world, policies)
    this.#show(this.#world)
    for (const map of this.#kept) map.flush()
    for (const [addr, end] of this.#world.ends) this.#showEnd(addr, end)
  }

  /** Compiled once. */
  #nextOf(world: World, policies: Policies): World {
    const known = world.next.get(policies)
    if (known !== undefined) return known
    const compiling = this.#compilingAt(world)
    const ends = this.#compile(compiling, policies, world.path.at(-1))
    const next = { path: [...world.path, policies], rows: this.#kept.map(({ rows }) => rows), ends, next: new WeakMap<Policies, World>() }
    world.next.set(policies, next)
    compiling.at = next
    return next
  }

  /** What has compiled all that leads to this world, with that in the maps' rows. */
  #compilingAt(world: World): Compiling {
    const compiling =
      this.#compiling.at === world ? this.#compiling : { compiler: new PolicyCompiler(), rules: new HostEndpointRules(), at: world }
    const isNew = compiling !== this.#compiling
    this.#show(isNew ? this.#nothing : world)
    this.#compiling = compiling
    if (isNew) for (const [index, policies] of world.path.entries()) this.#compile(compiling, policies, world.path[index - 1])
    return compiling
  }

  #show({ rows }: World): void {
    for (const [index, map] of this.#kept.entries()) map.rows = rows[index] ?? new Map<string, never>()
  }

  /** The ends that change. `before`: the policies that are there; undefined: there has been nothing yet. */
  #compile({ compiler, rules }: Compiling, policies: Policies, before?: Policies): World['ends'] {
    if (before !== undefined) return this.#take(rules, compiler.change(updates(policies, before)))
    const hosts = Object.entries(HOSTS).filter(([name]) => policies.some(({ subject }) => selects(subject, labelled(name))))
    rules.setDevices(['lo', ...hosts.map(([, device]) => device)].filter((name) => name !== '*').map(hostDevice))
    const ends = [...endpoints(), ...hosts.map(([name, device]) => hostEndpoint(name, device))]
    return policies.length === 0 ? [] : this.#take(rules, compiler.change([...ends, ...updates(policies, [])]))
  }

  #take(rules: HostEndpointRules, steps: readonly PolicyStep[]): World['ends'] {
    const ends: (readonly [Addr, EndValue | undefined])[] = []
    for (const step of steps) {
      if (step.kind === 'epoch') continue
      for (const row of step.rows) {
        if (row.table === 'ends') ends.push([row.key.addr, step.kind === 'delete' ? undefined : row.value])
        else if (row.table === 'hosts') this.#showHost(rules, row.key.endpoint, row.value)
        else this.#maps.write(row, step.kind === 'delete')
      }
    }
    return ends
  }

  #showHost(rules: HostEndpointRules, endpoint: string, value: HostValue): void {
    rules.set(endpoint, value)
    for (const [key, sets] of rules.rows()) this.#hosts.set(key, sets)
    this.#untracked.clear()
    for (const [ifindex, set] of rules.untrackedRows()) this.#untracked.set(ifindex, set)
  }

  /** Beside what the case says of the address. */
  #showEnd(addr: Addr, end: EndValue | undefined): void {
    const known: AddrInfo = this.#addrs.get(addr) ?? addrInfo(0)
    if (end === undefined && known.kind === 0 && known.flags === 0) {
      this.#addrs.delete(addr)
      return
    }
    const { identity, ingress, egress, stagedIngress, stagedEgress } = end ?? NOTHING
    this.#addrs.set(addr, { ...known, identity, ingress, egress, staged_ingress: stagedIngress, staged_egress: stagedEgress })
  }
}

function updates(policies: Policies, before: Policies): readonly PolicyUpdate[] {
  const names = new Set(policies.map(refText))
  const gone = before.map(refText).filter((name) => !names.has(name))
  return [
    ...policies.map((value) => ({ kind: 'policy' as const, key: refText(value), value })),
    ...gone.map((key) => ({ kind: 'policy' as const, key, value: undefined })),
  ]
}

function labelled(name: string): Labels {
  return new Map([['name', name]])
}

function hostEndpoint(name: string, interfaceName: string): PolicyUpdate {
  const value = { kind: 'host', labels: labelled(name), addrs: [], ports: [], profiles: [], local: true, interfaceName } as const
  return { kind: 'endpoint', key: `HostEndpoint/${name}`, value }
}

function hostDevice(name: string): Device {
  const rest = { mtu: 1500, mac: '', up: true, running: true, loopback: true, kind: undefined, master: 0, addresses: [] }
  return { kind: 'host', iface: { index: ifindexOf(name), name, ...rest } }
}

function endpoints(): readonly PolicyUpdate[] {
  return Object.entries(PODS).map(([name, { of, local }]) => ({
    kind: 'endpoint',
    key: `Pod/${name}`,
    value: {
      kind: 'pod',
      labels: labelled(name),
      addrs: families.map((f) => parseAddr(of(f))),
      ports: [],
      profiles: [OPEN],
      local,
    },
  }))
}

/** of a namespace without rules of its own: lets everything pass that no policy decides */
const OPEN = 'kns.default'
