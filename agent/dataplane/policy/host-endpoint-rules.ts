// SPDX-License-Identifier: Apache-2.0
/** Which rules each host device is under. Layer: agent/dataplane (pure data structure). */
import { HOST_REAL, HOST_STAGED, UNTRACKED_DEVICES } from '#lib/base/bpf-constants.ts'
import { formatAddr } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { NO_SET, type HostValue, type SetId } from '#agent/compile/policy/tables.ts'
import type { Interface } from '#agent/interfaces/table.ts'
import type { HostKey, HostSets } from '#agent/maps/shapes.ts'
import type { Device } from '../host/devices.ts'

/** All host devices that no other endpoint names, and the node's own processes. */
const WILDCARD = '*'
/** Where the rules of the node's own processes are, whatever device they use. */
const PROCESSES = 0

export class HostEndpointRules {
  readonly #endpoints = new Map<string, HostValue>()
  #devices: readonly Device[] = []

  /** names of endpoints */
  get endpoints(): Iterable<string> {
    return this.#endpoints.keys()
  }

  setDevices(devices: readonly Device[]): void {
    this.#devices = devices.filter(({ kind }) => kind === 'host')
  }

  /** undefined: there is none of this name any longer */
  set(endpoint: string, value: HostValue | undefined): void {
    if (value === undefined) this.#endpoints.delete(endpoint)
    else this.#endpoints.set(endpoint, value)
  }

  /** Rows by device. If several endpoints fit a device, one that names it goes before one that expects one of its
   * addresses; then the first by name. */
  rows(): readonly (readonly [HostKey, HostSets])[] {
    const { endpoints, wildcard } = this.#ordered()
    return [
      ...this.#devices.flatMap(({ iface }) => rowsOf(iface.index, endpointOf(endpoints, iface) ?? wildcard)),
      ...rowsOf(PROCESSES, wildcard),
    ]
  }

  /** What comes in by devices whose index fits, once more: as XDP looks for it. */
  untrackedRows(): readonly (readonly [ifindex: number, set: SetId])[] {
    const fits = ({ ifindex, view }: HostKey): boolean => view === HOST_REAL && ifindex !== PROCESSES && ifindex < UNTRACKED_DEVICES
    return this.rows().flatMap(([key, { untracked_ingress: set }]) => (fits(key) && set !== NO_SET ? [[key.ifindex, set] as const] : []))
  }

  /** Devices with rules for every packet that comes in. */
  get untracked(): readonly Interface[] {
    const { endpoints, wildcard } = this.#ordered()
    return this.#devices
      .map(({ iface }) => iface)
      .filter((iface) => ((endpointOf(endpoints, iface) ?? wildcard)?.sets.untrackedIngress ?? NO_SET) !== NO_SET)
  }

  /** By name of the endpoint: why no device is its own, whatever other endpoints there are. */
  get strays(): ReadonlyMap<string, string> {
    const fits = (value: HostValue): boolean => this.#devices.some(({ iface }) => endpointOf([value], iface) !== undefined)
    const strays = [...this.#endpoints].filter(([, value]) => value.interfaceName !== WILDCARD && !fits(value))
    return new Map(strays.sort((a, b) => compareText(a[0], b[0])).map(([name, value]) => [name, whyStray(value)]))
  }

  #ordered(): { readonly endpoints: readonly HostValue[]; readonly wildcard: HostValue | undefined } {
    const endpoints = [...this.#endpoints].sort((a, b) => compareText(a[0], b[0])).map(([, value]) => value)
    return { endpoints, wildcard: endpoints.find(({ interfaceName }) => interfaceName === WILDCARD) }
  }
}

function endpointOf(endpoints: readonly HostValue[], { name, addresses }: Interface): HostValue | undefined {
  const own = new Set(addresses.map(({ addr }) => addr))
  return (
    endpoints.find(({ interfaceName }) => interfaceName === name) ??
    endpoints.find(({ interfaceName, addrs }) => interfaceName === undefined && addrs.some((addr) => own.has(addr)))
  )
}

function whyStray({ interfaceName, addrs }: HostValue): string {
  return interfaceName === undefined
    ? `no host device of this node has ${addrs.map(formatAddr).join(' or ')}`
    : `this node has no host device ${interfaceName}`
}

/** The staged view has a row only where it is another one. */
function rowsOf(ifindex: number, endpoint: HostValue | undefined): (readonly [HostKey, HostSets])[] {
  if (endpoint === undefined) return []
  const real = [{ ifindex, view: HOST_REAL }, setsOf(endpoint.sets)] as const
  return deepEqual(endpoint.sets, endpoint.staged) ? [real] : [real, [{ ifindex, view: HOST_STAGED }, setsOf(endpoint.staged)]]
}

function setsOf(sets: HostValue['sets']): HostSets {
  return {
    untracked_ingress: sets.untrackedIngress,
    untracked_egress: sets.untrackedEgress,
    early_ingress: sets.earlyIngress,
    forward_ingress: sets.forwardIngress,
    forward_egress: sets.forwardEgress,
    normal_ingress: sets.normalIngress,
    normal_egress: sets.normalEgress,
  }
}
