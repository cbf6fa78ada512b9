// SPDX-License-Identifier: Apache-2.0
/** One node's programs and maps, filled with the little cluster that the packet tests know, and two services.
 * Layer: bench. */
import type { BpfProgram } from '#native'
import { ifindexOf } from '#native'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { PolicyStep, SetId } from '#agent/compile/policy/tables.ts'
import { nodeCfg, type Frontend } from '#agent/maps/shapes.ts'
import { InternalError } from '#lib/base/errors.ts'
import { ADDR_LOCAL_POD, ADDR_NODE, ADDR_NODE_PORTS, ADDR_SELF, SOURCE_ANY, STRAY_DROP } from '#lib/base/bpf-constants.ts'
import type { Addr } from '#lib/base/ip.ts'
import { ANY_V4, ANY_V6, addrBytes, addrFromBytes, parseAddr } from '#lib/base/ip.ts'
import { testCfg } from '../../testkit/packets/runner.ts'
import type { Features } from '../../testkit/packets/runner.ts'
import type { Family } from '../../testkit/packets/cluster.ts'
import { NODE_PORT, devices, families } from '../../testkit/packets/cluster.ts'
import { TestMap, sharedMaps } from '../../testkit/packets/objects.ts'
import type { Loaded } from './objects.ts'
import { addrInfo } from '../../testkit/packets/addr-info.ts'
import { PolicyMaps } from '../../testkit/packets/policy-maps.ts'
import { loadObject } from './objects.ts'

export type ProgramName = 'from_workload' | 'to_workload' | 'from_host' | 'to_host' | 'from_host_replay' | 'untracked'

/** Two node ports: one with its backend here, one on the other node. */
export const NEAR_PORT = NODE_PORT
export const FAR_PORT = NODE_PORT + 1
export const BACKEND_PORT = 8080

const SERVICE = { near: '00000000000000a0', far: '00000000000000b0' }
const TCP = 6

export class Node {
  readonly #programs: ReadonlyMap<ProgramName, BpfProgram>
  readonly #ct: TestMap<unknown, unknown>
  readonly #objects: readonly [Loaded, ...Loaded[]]

  private constructor({ tc, replay, xdp }: { readonly tc: Loaded; readonly replay: Loaded; readonly xdp: Loaded }) {
    this.#objects = [tc, replay, xdp]
    this.#programs = new Map<ProgramName, BpfProgram>([
      ['from_workload', tc.object.program('from_workload')],
      ['to_workload', tc.object.program('to_workload')],
      ['from_host', tc.object.program('from_host')],
      ['to_host', tc.object.program('to_host')],
      ['from_host_replay', replay.object.program('from_host')],
      ['untracked', xdp.object.program('untracked')],
    ])
    this.#ct = new TestMap(tc, catalogue.np_ct)
  }

  /** In the current network namespace, which must have the devices of the packet tests. `flows`: size of the flow
   * table. */
  static async load(features: Features, flows: number): Promise<Node> {
    const knobs = [{ name: 'cfg', field: nodeCfg, value: { ...testCfg(features), ...AS_BY_DEFAULT } }]
    const tc = await loadObject('bpf/tc.bpf.o', { knobs, entries: { np_ct: flows } })
    const share = sharedMaps(tc.object)
    const replay = await loadObject('bench/replay.bpf.o', { knobs, share })
    const xdp = await loadObject('bpf/xdp.bpf.o', { knobs, share })
    for (const map of share.values()) map.close()
    fill(tc)
    return new Node({ tc, replay, xdp })
  }

  program(name: ProgramName): BpfProgram {
    const program = this.#programs.get(name)
    if (program === undefined) throw new InternalError(`no program ${name}`)
    return program
  }

  /** Brings rows of policy into the maps; addresses that are new are pods of this node. Returns bytes of the rows. */
  take(steps: readonly PolicyStep[]): number {
    const maps = new PolicyMaps(this.#objects[0])
    const addrs = new TestMap(this.#objects[0], catalogue.np_addrs)
    const pod = addrInfo(ADDR_LOCAL_POD, { ifindex: ifindexOf('lo') })
    let bytes = 0
    for (const step of steps) {
      if (step.kind === 'epoch' || step.kind === 'delete') continue
      for (const row of step.rows) {
        if (row.table === 'hosts') continue
        if (row.table === 'ends') {
          const { identity, ingress, egress, stagedIngress, stagedEgress } = row.value
          const known = addrs.get(row.key.addr) ?? pod
          addrs.set(row.key.addr, { ...known, identity, ingress, egress, staged_ingress: stagedIngress, staged_egress: stagedEgress })
        } else bytes += maps.write(row, false)
      }
    }
    maps.close()
    addrs.map.close()
    return bytes
  }

  /** What the device on which test runs happen asks of every packet. */
  setUntracked(ingress: SetId): void {
    const untracked = new TestMap(this.#objects[0], catalogue.np_untracked)
    untracked.set(ifindexOf('lo'), ingress)
    untracked.map.close()
  }

  /** Are packets and bytes of flows counted? */
  count(isCounted: boolean): void {
    const state = new TestMap(this.#objects[0], catalogue.np_state)
    state.set(0, { takeover_until: 0, epoch: 0, own_prefixes: 0, accounts: Number(isCounted), tunnel_device: 0 })
    state.map.close()
  }

  /** Keys of all flows, back to back. */
  async flows(): Promise<{ readonly keys: Buffer; readonly count: number }> {
    return await this.#ct.map.dump()
  }

  forget(flows: { readonly keys: Buffer; readonly count: number }): void {
    this.#ct.map.deleteBatch(flows.keys, flows.count)
  }

  close(): void {
    for (const program of this.#programs.values()) program.close()
    this.#ct.map.close()
    for (const { object } of this.#objects) object.close()
  }
}

function fill(loaded: Loaded): void {
  const ifaces = new TestMap(loaded, catalogue.np_ifaces)
  for (const device of Object.values(devices)) {
    ifaces.set(ifindexOf(device.name), { mtu: device.mtu, kind: device === devices.underlay ? 2 : 1, mac: device.mac })
  }
  // test runs happen on lo
  ifaces.set(ifindexOf('lo'), { mtu: 1500, kind: 1, mac: devices.pod.mac })
  ifaces.map.close()
  for (const family of families) fillFamily(loaded, family)
}

/** where the packet tests have other settings than an agent has by default */
const AS_BY_DEFAULT = {
  ...{ source_check: SOURCE_ANY, dsr: 0, overlay: 0, stray_service: STRAY_DROP, nat_port_count: 10_000 },
  ...{ host_policy: 0, untracked: 0, recent_mask: 65_535 },
}

/** pods whose addresses follow each other, enough for the flows of all rounds */
const SENDERS = 4096

/** Address of the first of them. */
export function firstSender(f: Family): string {
  return f.v4 ? '10.10.16.0' : 'fd00:10:1::1000'
}

/** Address of one of the pods that new flows come from. */
function sender(f: Family, number: number): Addr {
  const bytes = Buffer.from(addrBytes(parseAddr(firstSender(f))))
  bytes.writeUInt32BE(bytes.readUInt32BE(12) + number, 12)
  return addrFromBytes(bytes)
}

function fillFamily(loaded: Loaded, f: Family): void {
  const addrs = new TestMap(loaded, catalogue.np_addrs)
  // no policy, as in a cluster without any; they send from lo, where test runs happen
  const pod = addrInfo(ADDR_LOCAL_POD, { ifindex: ifindexOf('lo') })
  for (const addr of [f.pod, f.secondPod]) addrs.set(parseAddr(addr), pod)
  for (let number = 0; number < SENDERS; number++) addrs.set(sender(f, number), pod)
  addrs.set(parseAddr(f.node), addrInfo(ADDR_SELF, { flags: ADDR_NODE_PORTS }))
  addrs.set(parseAddr(f.otherNode), addrInfo(ADDR_NODE))
  addrs.map.close()
  const frontends = new TestMap(loaded, catalogue.np_frontends)
  const backends = new TestMap(loaded, catalogue.np_backends)
  const any = f.v4 ? ANY_V4 : ANY_V6
  const list = (service: string): string => (f.v4 ? service : service.replace(/0$/, '6'))
  const frontend = (service: string): Frontend => {
    const choice = { list: list(service), count: 1 }
    return { inside: choice, outside: choice, flags: 0, affinity: 0 }
  }
  frontends.set({ addr: parseAddr(f.vip), port: 80, proto: TCP }, frontend(SERVICE.near))
  frontends.set({ addr: any, port: NEAR_PORT, proto: TCP }, frontend(SERVICE.near))
  frontends.set({ addr: any, port: FAR_PORT, proto: TCP }, frontend(SERVICE.far))
  backends.set({ list: list(SERVICE.near), slot: 0 }, { addr: parseAddr(f.pod), node: ANY_V6, port: BACKEND_PORT, flags: 0 })
  backends.set(
    { list: list(SERVICE.far), slot: 0 },
    { addr: parseAddr(f.remotePod), node: parseAddr(f.otherNode), port: BACKEND_PORT, flags: 0 },
  )
  frontends.map.close()
  backends.map.close()
}
