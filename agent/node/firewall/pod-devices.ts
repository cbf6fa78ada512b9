// SPDX-License-Identifier: Apache-2.0
/** By which devices rules of others know pods' packets. Layer: agent/node (pure). */

export interface PodDevices {
  /** as one of them is called */
  readonly name: string
  /** with which the names of all of them begin; undefined: it is the only one */
  readonly prefix: string | undefined
  /** what their pods exchange with the network passes the kernel's stack */
  readonly routed: boolean
}

interface Device {
  readonly index: number
  readonly name: string
  readonly kind: string | undefined
  readonly master: number
}

/** Of pods that our own plugin plugs in. */
export function ownDevices(prefix: string): PodDevices {
  return { name: `${prefix}00000000000`, prefix, routed: false }
}

/** One for many that are called alike, but for digits at the end; of ports of a bridge the bridge. Without pods,
 * those that we would plug in. */
export function podDevices(
  veths: readonly { readonly iface: string; readonly ours: boolean }[],
  { devices, prefix }: { readonly devices: readonly Device[]; readonly prefix: string },
): readonly PodDevices[] {
  const byName = new Map(devices.map((device) => [device.name, device]))
  const bridges = new Map(devices.filter(({ kind }) => kind === 'bridge').map(({ index, name }) => [index, name]))
  const found = veths.map(({ iface, ours }): PodDevices => {
    if (ours) return ownDevices(prefix)
    const bridge = bridges.get(byName.get(iface)?.master ?? 0)
    return { name: bridge ?? iface, prefix: bridge === undefined ? iface.replace(/[0-9a-f]*$/, '') : undefined, routed: true }
  })
  const kinds = new Map(found.toReversed().map((one) => [one.prefix ?? one.name, one]))
  return kinds.size === 0 ? [ownDevices(prefix)] : [...kinds.values()].toReversed()
}
