// SPDX-License-Identifier: Apache-2.0
/** What has the tunnel's port on this node already. Layer: agent. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import type { Port } from '#lib/base/ip.ts'
import { finding, type Finding } from '#lib/preflight/findings.ts'
import { TUNNEL_DEVICE } from '../../dataplane/host/tunnel-device.ts'
import { listInterfaces } from '../../interfaces/list-interfaces.ts'

export function ownerFindings(port: Port): Finding[] {
  const devices = listInterfaces()
    .all()
    .filter(({ vxlan }) => vxlan?.port === port)
  const sockets = ['udp', 'udp6'].flatMap((file) => socketsAt(port, textOf(`/proc/net/${file}`)))
  // the socket of a device is of no program
  const unknown = ({ uid }: PortSocket): string[] => (devices.length > 0 ? [] : [`a program of user ${uid}`])
  const owners = new Set(sockets.flatMap((socket) => programOf(socket.inode) ?? unknown(socket)))
  return [
    ...devices.flatMap(({ name }) => (name === TUNNEL_DEVICE ? [] : [finding('vxlan-port-device', port, name)])),
    ...[...owners].map((owner) => finding('vxlan-port-socket', port, owner)),
  ]
}

export interface PortSocket {
  readonly uid: number
  readonly inode: number
}

/** From the text of /proc/net/udp or udp6. */
export function socketsAt(port: number, table: string): PortSocket[] {
  return table
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [, local = '', , , , , , uid, , inode] = line.trim().split(/\s+/)
      const isAt = Number.parseInt(local.slice(local.indexOf(':') + 1), 16) === port
      return isAt ? [{ uid: Number(uid), inode: Number(inode) }] : []
    })
}

/** By its name; undefined where processes of others cannot be looked into, as from a pod. */
function programOf(inode: number): string | undefined {
  const wanted = `socket:[${inode}]`
  const pid = namesIn('/proc').find(
    (name) => /^\d+$/.test(name) && namesIn(`/proc/${name}/fd`).some((fd) => linkOf(`/proc/${name}/fd/${fd}`) === wanted),
  )
  return pid === undefined ? undefined : `program ${textOf(`/proc/${pid}/comm`).trim()} (process ${pid})`
}

function namesIn(folder: string): string[] {
  return orElse(() => readdirSync(folder), [])
}

function linkOf(path: string): string {
  return orElse(() => readlinkSync(path), '')
}

function textOf(path: string): string {
  return orElse(() => readFileSync(path, 'utf8'), '')
}

/** Processes come and go while we look. */
function orElse<T>(read: () => T, otherwise: T): T {
  try {
    return read()
  } catch {
    return otherwise
  }
}
