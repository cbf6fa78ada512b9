// SPDX-License-Identifier: Apache-2.0
/** The device that announces the tunnel's port, so that the kernel merges our packets before our programs see them
 * (GRO; decisions/002). By setting our packets leave by it as well, with a checksum. It has no address and no route.
 * Any sender of VXLAN would reach the node by it: so a program drops all, is there before the device is up, and goes
 * with it alone. Layer: agent/dataplane. */
import { constants } from 'node:os'
import type { NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import { encodeLinkRemoval, encodeLinkUp, encodeVxlan, RTM_DELLINK, RTM_NEWLINK } from '#agent/interfaces/netlink/link.ts'
import { NLM_F_CREATE, NLM_F_EXCL } from '#agent/interfaces/netlink/message.ts'
import type { Interface, Interfaces } from '#agent/interfaces/table.ts'
import { errorCode, errorText, NetlinkError } from '#lib/base/errors.ts'
import type { Port } from '#lib/base/ip.ts'
import type { Log } from '#lib/obs/log.ts'
import { interfaceHook, type Hooks, type InterfaceHook, type LoadedProgram } from '../attach/hook.ts'
import { failure, NOTHING_DONE, type Outcome, type ReconcileStep } from '../reconcile/step.ts'

export const TUNNEL_DEVICE = 'netplane-vxlan'

/** Below IPv6's least MTU the kernel has no IPv6 on a device: no address, no groups, no solicitations. What comes in is
 * not held to it. The hardware address is given so that no service of the system makes one. */
const LINK = { name: TUNNEL_DEVICE, mac: '02:6e:70:6c:00:01', mtu: 1279 }

const { EEXIST, EADDRINUSE, EOPNOTSUPP } = constants.errno
const IN_THE_WAY: ReadonlyMap<number, string> = new Map([
  [EOPNOTSUPP, 'this kernel has no VXLAN devices'],
  [EEXIST, 'another VXLAN device has it'],
  [EADDRINUSE, 'another socket has it'],
])
/** What a kernel without clsact or filters of programs says. */
const NO_FILTERS: ReadonlySet<string | undefined> = new Set(['ENOENT', 'EOPNOTSUPP', 'ENOTSUP'])

export interface TunnelDeviceOptions {
  readonly netlink: NetlinkExchange
  readonly interfaces: Interfaces
  readonly hooks: Hooks<InterfaceHook>
  /** that drops all; undefined while nothing is loaded */
  readonly program: () => LoadedProgram | undefined
  /** Has packets enter the tunnel by the device of this index, once something is loaded; 0: by none. Throws the
   * kernel's error. */
  readonly enter: (index: number) => void
  /** why packets cannot do so on this kernel; undefined: they can */
  readonly whyNoChecksums: string | undefined
  readonly log: Log
  /** It was found other than we had left it. */
  readonly onDrift: (lack: string) => void
}

interface Left {
  readonly index: number
  readonly port: Port
  readonly program: number
}

export class TunnelDevice implements ReconcileStep {
  readonly name = 'tunnel-device'
  readonly #options: TunnelDeviceOptions
  #port: Port | undefined
  #checksums = false
  /** is to be looked at */
  #stale = false
  /** something is in the way, until it is looked for again */
  #waits = false
  /** how we left it; undefined: not yet as it should be */
  #left: Left | undefined
  #said: string | undefined
  /** 0: packets do not enter by it */
  #entered = 0

  constructor(options: TunnelDeviceOptions) {
    this.#options = options
  }

  /** How packets of the tunnel leave; undefined: there is none. */
  get way(): { readonly port: Port; readonly hasChecksums: boolean } | undefined {
    return this.#port === undefined ? undefined : { port: this.#port, hasChecksums: this.#entered !== 0 }
  }

  /** undefined: no node sends us anything in a tunnel. `checksums`: our packets leave by the device */
  setDesired(port: Port | undefined, checksums: boolean): void {
    this.#port = port
    this.#checksums = checksums
    this.markStale()
  }

  markStale(): void {
    this.#stale = true
  }

  /** What was in the way may have gone. */
  tryAgain(): void {
    this.#waits = false
    this.markStale()
  }

  /** Compares it with the kernel; true when a pass has something to put right. */
  check(): boolean {
    const { interfaces, program } = this.#options
    const loaded = program()
    if (this.#left === undefined || loaded === undefined) return false
    this.#stale ||= this.#lackOf(interfaces.byName(TUNNEL_DEVICE), this.#left.port, loaded) !== undefined
    return this.#stale
  }

  pending(): boolean {
    return this.#stale && this.#options.program() !== undefined
  }

  apply(): Outcome {
    this.#stale = false
    const program = this.#options.program()
    const device = this.#options.interfaces.byName(TUNNEL_DEVICE)
    if (program === undefined) return NOTHING_DONE
    try {
      const done = this.#port === undefined ? this.#remove(device) : this.#settle(device, this.#port, program)
      return this.#enter(done)
    } catch (thrown) {
      const reason = whatIsInTheWay(thrown)
      if (reason === undefined) {
        this.#stale = true
        return { done: 0, failures: [failure(TUNNEL_DEVICE, thrown)] }
      }
      return this.#enter(this.#wait(reason, device))
    }
  }

  /** The last step: our packets leave by the device as soon as it is as it should be. */
  #enter(done: number): Outcome {
    if (!this.#checksums || this.#port === undefined) return this.#entering(0, done)
    const reason = this.#options.whyNoChecksums ?? (this.#waits ? this.#said : undefined)
    if (reason === undefined) return this.#entering(this.#left?.index ?? 0, done)
    this.#stale = true
    const cause = `bpfTunnelUDPChecksum is Enabled, but packets of the tunnel have no checksum: ${reason}`
    return { done, failures: [failure(TUNNEL_DEVICE, cause)] }
  }

  #entering(index: number, done: number): Outcome {
    try {
      this.#options.enter(index)
      this.#entered = index
      return { done, failures: [] }
    } catch (thrown) {
      this.#stale = true
      return { done, failures: [failure(TUNNEL_DEVICE, thrown)] }
    }
  }

  /** One step at a time: the kernel's word of a device that was made or removed comes with its message. */
  #settle(device: Interface | undefined, port: Port, program: LoadedProgram): number {
    const { netlink, interfaces, hooks, log, onDrift } = this.#options
    const other = interfaces.all().find(({ name, vxlan }) => name !== TUNNEL_DEVICE && vxlan?.port === port)
    if (other !== undefined) return this.#wait(`${other.name} has it`, device)
    if (device !== undefined && device.kind !== 'vxlan') return this.#wait(`${TUNNEL_DEVICE} is another program's`, device)
    if (this.#waits) return 0
    const lack = this.#lackOf(device, port, program)
    if (lack !== undefined && this.#left?.port === port && this.#left.program === program.id) onDrift(lack)
    this.#left = lack === undefined && device !== undefined ? { index: device.index, port, program: program.id } : undefined
    if (lack === undefined) return 0
    if (device === undefined) {
      const flags = NLM_F_CREATE | NLM_F_EXCL
      netlink.request({ what: `make ${TUNNEL_DEVICE}`, type: RTM_NEWLINK, flags, payload: encodeVxlan(LINK, port) })
      return 1
    }
    if (!isFor(device, port)) return this.#remove(device)
    const place = interfaceHook(device, 'ingress')
    if (hooks.read(place) !== program.id) hooks.write(place, program)
    if (!device.up) {
      netlink.request({ what: `set ${TUNNEL_DEVICE} up`, type: RTM_NEWLINK, payload: encodeLinkUp(device.index) })
      log.info({ device: TUNNEL_DEVICE, port }, 'tunnel.announced')
    }
    this.#said = undefined
    this.#left = { index: device.index, port, program: program.id }
    return 1
  }

  /** What of it is not as it should be; undefined: nothing. */
  #lackOf(device: Interface | undefined, port: Port, program: LoadedProgram): string | undefined {
    if (device === undefined) return 'is gone'
    if (!isFor(device, port)) return 'is of another kind or port'
    if (this.#options.hooks.read(interfaceHook(device, 'ingress')) !== program.id) return 'has another program'
    return device.up ? undefined : 'is down'
  }

  #wait(reason: string, device: Interface | undefined): number {
    this.#waits = true
    if (this.#said !== reason) this.#options.log.info({ port: this.#port, reason }, 'tunnel.unannounced')
    this.#said = reason
    return this.#remove(device)
  }

  /** What has our name and is no VXLAN device is another's. */
  #remove(device: Interface | undefined): number {
    this.#left = undefined
    // no packet is to be sent to a device that has gone
    if (this.#options.program() !== undefined) this.#options.enter(0)
    this.#entered = 0
    return device?.kind === 'vxlan' && removeTunnelDevice(this.#options.netlink) ? 1 : 0
  }
}

/** False when it had gone already. Throws NetlinkError. */
export function removeTunnelDevice(netlink: NetlinkExchange): boolean {
  return removeDevice(netlink, TUNNEL_DEVICE)
}

/** False when it had gone already. Throws NetlinkError. */
export function removeDevice(netlink: NetlinkExchange, name: string): boolean {
  try {
    netlink.request({ what: `remove ${name}`, type: RTM_DELLINK, payload: encodeLinkRemoval(name) })
    return true
  } catch (thrown) {
    if (thrown instanceof NetlinkError && thrown.errno === constants.errno.ENODEV) return false
    throw thrown
  }
}

function isFor({ vxlan }: Interface, port: Port): boolean {
  return vxlan?.port === port && vxlan.external
}

/** Why there can be no such device here; undefined: it should work. */
function whatIsInTheWay(thrown: unknown): string | undefined {
  if (thrown instanceof NetlinkError) return IN_THE_WAY.get(thrown.errno)
  return NO_FILTERS.has(errorCode(thrown)) ? `this kernel has no filters of programs: ${errorText(thrown)}` : undefined
}
