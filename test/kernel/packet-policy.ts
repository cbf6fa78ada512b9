// SPDX-License-Identifier: Apache-2.0
/** The policies of a packet case in the maps: compiled, changed step by step, and named when a flow tells by which rule it is let be. Layer: test. */
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import { NO_SET } from '#agent/compile/policy/tables.ts'
import type { EndValue, HostValue, PolicyStep } from '#agent/compile/policy/tables.ts'
import type { PolicyUpdate } from '#agent/compile/policy/world.ts'
import type { MapDefinition } from '#agent/maps/catalogue.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { AddrInfo } from '#agent/maps/shapes.ts'
import { parseAddr } from '#lib/base/ip.ts'
import type { Addr } from '#lib/base/ip.ts'
import type { Labels } from '#lib/model/labels.ts'
import type { Policy } from '#lib/model/policy.ts'
import { refText } from '#lib/model/ref.ts'
import { selects } from '#lib/model/selector.ts'
import type { Device } from '#agent/dataplane/devices.ts'
import { HostRules } from '#agent/dataplane/policy/host-rules.ts'
import { ifindexOf } from '#native'
import { addrInfo } from '../support/addr-info.ts'
import type { Loaded } from '../support/objects.ts'
import { TestMap } from '../support/objects.ts'
import { PolicyMaps } from '../support/policy-maps.ts'
import { devices, families } from './packets/world.ts'
import type { Family } from './packets/world.ts'

/** Pods that policies may mean, by their label "name"; those of this node are under policy. */
export const PODS = {
  pod: { of: (f: Family) => f.pod, local: true },
  second: { of: (f: Family) => f.secondPod, local: true },
  masked: { of: (f: Family) => f.maskedPod, local: true },
  remote: { of: (f: Family) => f.remotePod, local: false },
} as const

/** Host endpoints, there where a policy means them: of the device that test runs happen on and of the node's own processes; of the underlay. */
export const HOST = 'host'
export const UNDERLAY = 'underlay'
const HOSTS = { [HOST]: '*', [UNDERLAY]: devices.underlay.name } as const

type MapOf<D> = D extends MapDefinition<infer K, infer V> ? TestMap<K, V> : never
const NOTHING: EndValue = { identity: 0, ingress: NO_SET, egress: NO_SET, stagedIngress: NO_SET, stagedEgress: NO_SET }

export class PacketPolicy {
  readonly #maps: PolicyMaps
  readonly #addrs: MapOf<typeof catalogue.np_addrs>
  readonly #state: MapOf<typeof catalogue.np_state>
  readonly #hosts: MapOf<typeof catalogue.np_hosts>
  readonly #untracked: MapOf<typeof catalogue.np_untracked>
  #compiler = new PolicyCompiler()
  #policies: readonly Policy[] = []
  #written: ReadonlySet<Addr> = new Set()
  #rules = new HostRules()

  constructor(loaded: Loaded) {
    this.#maps = new PolicyMaps(loaded)
    this.#addrs = new TestMap(loaded, catalogue.np_addrs)
    this.#state = new TestMap(loaded, catalogue.np_state)
    this.#hosts = new TestMap(loaded, catalogue.np_hosts)
    this.#untracked = new TestMap(loaded, catalogue.np_untracked)
  }

  /** Whatever was there goes. Without policies there is nothing in the maps. */
  async start(policies: readonly Policy[]): Promise<void> {
    if (this.#written.size > 0) await Promise.all([this.#maps.clear(), this.#hosts.clear()])
    for (const addr of this.#written) this.#showEnd(addr, undefined)
    this.#untracked.set(ifindexOf('lo'), NO_SET)
    this.#written = new Set()
    this.#compiler = new PolicyCompiler()
    this.#policies = []
    const hosts = Object.entries(HOSTS).filter(([name]) => policies.some(({ subject }) => selects(subject, labelled(name))))
    this.#rules = new HostRules()
    this.#rules.setDevices(['lo', ...hosts.map(([, device]) => device)].filter((name) => name !== '*').map(hostDevice))
    const ends = [...endpoints(), ...hosts.map(([name, device]) => hostEndpoint(name, device))]
    if (policies.length > 0) this.#take(this.#compiler.change([...ends, ...this.#updates(policies)]))
  }

  /** `next`: flows that are there are asked about again. */
  change(policies: readonly Policy[], next: boolean): void {
    this.#take(this.#compiler.change(this.#updates(policies)))
    const state = this.#state.get(0)
    if (next && state !== undefined) this.#state.set(0, { ...state, epoch: state.epoch + 1 })
  }

  /** "allow" policies have one name, their rules another each; '' for 0. */
  ruleName(number: number): string {
    return number === 0 ? '' : (this.#compiler.ruleName(number) ?? `rule ${number}`)
  }

  close(): void {
    for (const map of [this.#maps, this.#addrs.map, this.#state.map, this.#hosts.map, this.#untracked.map]) map.close()
  }

  #updates(policies: readonly Policy[]): readonly PolicyUpdate[] {
    const names = new Set(policies.map(refText))
    const gone = this.#policies.map(refText).filter((name) => !names.has(name))
    this.#policies = policies
    return [
      ...policies.map((value) => ({ kind: 'policy' as const, key: refText(value), value })),
      ...gone.map((key) => ({ kind: 'policy' as const, key, value: undefined })),
    ]
  }

  #take(steps: readonly PolicyStep[]): void {
    for (const step of steps) {
      if (step.kind === 'epoch') continue
      for (const row of step.rows) {
        if (row.table === 'ends') this.#showEnd(row.key.addr, step.kind === 'forget' ? undefined : row.value)
        else if (row.table === 'hosts') this.#showHost(row.key.endpoint, row.value)
        else this.#maps.write(row, step.kind === 'forget')
      }
    }
  }

  #showHost(endpoint: string, value: HostValue): void {
    this.#rules.set(endpoint, value)
    for (const [key, sets] of this.#rules.rows()) this.#hosts.set(key, sets)
    this.#untracked.set(ifindexOf('lo'), NO_SET)
    for (const [ifindex, set] of this.#rules.untrackedRows()) this.#untracked.set(ifindex, set)
  }

  /** Beside what the case says of the address. */
  #showEnd(addr: Addr, end: EndValue | undefined): void {
    this.#written = new Set([...this.#written, addr])
    const known: AddrInfo = this.#addrs.get(addr) ?? addrInfo(0)
    if (end === undefined && known.kind === 0 && known.flags === 0) {
      this.#addrs.delete(addr)
      return
    }
    const { identity, ingress, egress, stagedIngress, stagedEgress } = end ?? NOTHING
    this.#addrs.set(addr, { ...known, identity, ingress, egress, staged_ingress: stagedIngress, staged_egress: stagedEgress })
  }
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
