// SPDX-License-Identifier: Apache-2.0
/** The device that announces the tunnel's port, on this kernel: what it is, and that nothing gets in by it. The devices
 * of packet cases are there. Layer: test. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { readdirSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { NetlinkSocket, tcDetach } from '#native'
import { ClsactHooks } from '#agent/dataplane/attach/clsact.ts'
import type { LoadedProgram } from '#agent/dataplane/attach/hook.ts'
import { TUNNEL_DEVICE, TunnelDevice } from '#agent/dataplane/host/tunnel-device.ts'
import { InterfaceMonitor, MONITOR_BUFFER_BYTES, MONITOR_GROUPS } from '#agent/interfaces/monitor.ts'
import { NETLINK_ROUTE, NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import type { Interface } from '#agent/interfaces/table.ts'
import { parsePort, type Port } from '#lib/base/ip.ts'
import { silentLog } from '#lib/obs/log.ts'
import { udp } from '../../../testkit/packets/packet.ts'
import type { PacketRunner } from '../../../testkit/packets/runner.ts'

type Check = (name: string, wrong: string | undefined) => void

const PORT = parsePort(4789)
const OTHER_PORT = parsePort(4790)
/** the node's, of packet cases */
const NODE = { v4: '192.168.50.1', v6: 'fd00:50::1' }
const NEIGHBOUR = { v4: '192.168.50.77', v6: 'fd00:50::77' }
const VICTIM = 5555
const SOON_MS = 300
/** How often the control looks for what came in. */
const LOOKS = 30

/** Inner frames that any node would take: to all, to a group, to the device itself. */
const MACS = { all: 'ff:ff:ff:ff:ff:ff', group: '01:00:5e:00:00:01', self: '02:6e:70:6c:00:01' }
const VNIS = [0, 20_048, 0xffffff]

type Families = Readonly<Record<'v4' | 'v6', string>>

/** What a sender of VXLAN may put into one datagram for the node with these addresses, by name. */
export function intrusions(to: Families, from: Families): ReadonlyMap<string, Uint8Array> {
  const found = new Map<string, Uint8Array>()
  for (const vni of VNIS)
    for (const [whom, dst] of Object.entries(MACS))
      for (const family of ['v4', 'v6'] as const) {
        const at = (addr: string, port: number): string => (family === 'v4' ? `${addr}:${port}` : `[${addr}]:${port}`)
        const name = `VNI ${vni}, ${family} to ${whom}`
        const inner = udp(at(from[family], 7), at(to[family], VICTIM), { payload: name, macs: { src: '02:00:00:00:00:77', dst } })
        const payload = new Uint8Array(8 + inner.length)
        payload[0] = 8
        new DataView(payload.buffer).setUint32(4, vni << 8)
        payload.set(inner, 8)
        found.set(name, payload)
      }
  return found
}

const INTRUSIONS = intrusions(NODE, NEIGHBOUR)

/** A datagram's text once it reached a socket of the node. */
async function victims(): Promise<{ readonly got: string[]; readonly sockets: readonly Socket[] }> {
  const got: string[] = []
  const sockets = (['udp4', 'udp6'] as const).map((type) => createSocket({ type, ipv6Only: type === 'udp6' }))
  for (const socket of sockets) {
    socket.on('message', (text) => got.push(text.toString()))
    socket.bind(VICTIM)
    await once(socket, 'listening')
  }
  return { got, sockets }
}

/** All of them by each family's loopback address. */
async function intrude(): Promise<void> {
  for (const [type, to] of [
    ['udp4', '127.0.0.1'],
    ['udp6', '::1'],
  ] as const) {
    const socket = createSocket(type)
    for (const payload of INTRUSIONS.values())
      await new Promise<void>((resolve, reject) => socket.send(payload, PORT, to, (error) => (error === null ? resolve() : reject(error))))
    socket.close()
  }
  await setTimeout(SOON_MS)
}

class Machine implements Disposable {
  readonly #monitor = new InterfaceMonitor({
    socket: NetlinkSocket.open({ protocol: NETLINK_ROUTE, groups: MONITOR_GROUPS, receiveBufferBytes: MONITOR_BUFFER_BYTES }),
    log: silentLog,
  })
  readonly #asking = NetlinkSocket.open({ protocol: NETLINK_ROUTE })
  readonly netlink = new NetlinkExchange(this.#asking)
  readonly drift: string[] = []
  readonly #device: TunnelDevice

  constructor(drop: LoadedProgram) {
    this.#monitor.start()
    const { interfaces } = this.#monitor
    const hooks = ClsactHooks.ofDrop(interfaces)
    this.#device = new TunnelDevice({
      ...{ netlink: this.netlink, interfaces, hooks, program: () => drop, log: silentLog },
      ...{ enter: () => undefined, whyNoChecksums: undefined },
      onDrift: (lack) => this.drift.push(lack),
    })
  }

  /** The device after all passes that it takes. Throws what fails. */
  settle(port: Port | undefined): Interface | undefined {
    this.#device.setDesired(port, false)
    for (let passes = 0; passes < 10; passes++) {
      this.#monitor.resync()
      this.#device.markStale()
      const { done, failures } = this.#device.apply()
      if (failures[0] !== undefined) throw new Error(failures[0].reason)
      if (done === 0) return this.#monitor.interfaces.byName(TUNNEL_DEVICE)
    }
    throw new Error('it never ends')
  }

  [Symbol.dispose](): void {
    this.#monitor[Symbol.dispose]()
    this.#asking.close()
  }
}

export async function tunnelDeviceCases(runner: PacketRunner, check: Check): Promise<void> {
  const handle = runner.handle('drop_tunnel')
  const before = runner.counted('DROP_TUNNEL_FOREIGN')
  using machine = new Machine({ id: handle.info().id, handle })
  const { got, sockets } = await victims()
  try {
    const device = machine.settle(PORT)
    const { up, kind, vxlan, addresses = [] } = device ?? {}
    const found = JSON.stringify({ up, kind, vxlan, addresses })
    const wanted = JSON.stringify({ up: true, kind: 'vxlan', vxlan: { port: PORT, external: true }, addresses: [] })
    check('the tunnel’s device is made', found === wanted ? undefined : found)
    check('it has no IPv6', readdirSync('/proc/sys/net/ipv6/conf').includes(TUNNEL_DEVICE) ? 'it has' : undefined)
    await intrude()
    const dropped = runner.counted('DROP_TUNNEL_FOREIGN') - before
    check('nothing gets in by it', got.length === 0 ? undefined : got.join(', '))
    check('what it drops is counted', dropped === 2 * INTRUSIONS.size ? undefined : `${dropped} of ${2 * INTRUSIONS.size}`)
    check('of another port it is made again', machine.settle(OTHER_PORT)?.vxlan?.port === OTHER_PORT ? undefined : 'it is not')
    check('nothing of that was drift', machine.drift.length === 0 ? undefined : machine.drift.join(', '))
    await control(machine, got, check)
    check('without a tunnel it goes', machine.settle(undefined) === undefined ? undefined : 'it is there')
  } finally {
    machine.settle(undefined)
    for (const socket of sockets) socket.close()
    handle.close()
  }
}

/** Without the program the door is open: else the cases say nothing. */
async function control(machine: Machine, got: readonly string[], check: Check): Promise<void> {
  const device = machine.settle(PORT)
  for (const name of ['all', TUNNEL_DEVICE]) writeFileSync(`/proc/sys/net/ipv4/conf/${name}/rp_filter`, '0')
  if (device !== undefined) tcDetach({ ifindex: device.index, direction: 'ingress', handle: 1, priority: 1 })
  await intrude()
  // on a busy machine they come later
  for (let looks = 0; looks < LOOKS && got.length === 0; looks++) await setTimeout(SOON_MS)
  check('without its program all comes in', got.length > 0 ? undefined : 'nothing does')
}
