// SPDX-License-Identifier: Apache-2.0
/** Programs of others where ours are going to be. Layer: agent. */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { BpfProgram, cgroupQuery, NetlinkSocket, tcxQuery, xdpQuery } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import { finding, type Finding } from '#lib/preflight/findings.ts'
import { CGROUP_HOOKS } from '../dataplane/attach/cgroup.ts'
import { DROP_PROGRAM, PACKET_PROGRAM } from '../dataplane/attach/clsact.ts'
import { DIRECTIONS } from '../dataplane/attach/hook.ts'
import { STANDBY_PROGRAM } from '../dataplane/attach/standbys.ts'
import { hasTcx } from '../dataplane/attach/tcx.ts'
import { XDP_PROGRAM } from '../dataplane/attach/xdp.ts'
import { isBpffs } from '../dataplane/pins.ts'
import { NETLINK_ROUTE, NetlinkExchange } from '../interfaces/netlink/exchange.ts'
import { CLSACT_PARENT, decodeFilter, encodeFilterDump, RTM_GETTFILTER } from '../interfaces/netlink/tc.ts'
import type { Interface } from '../interfaces/table.ts'
import { ownerOfPin, ownerOfProgram } from './data-planes.ts'

/** A program by its place: "eth0/ingress". */
export interface PlacedProgram {
  readonly place: string
  readonly name: string
}

export function programFindings(programs: readonly PlacedProgram[]): Finding[] {
  return programs.map(({ place, name }) => {
    const owner = ownerOfProgram(name)
    return owner === undefined ? finding('foreign-program', place, name) : finding('data-plane-program', owner, place, name)
  })
}

/** On these devices. */
export function devicePrograms(devices: readonly Interface[]): PlacedProgram[] {
  const tcx = hasTcx()
  const netlink = NetlinkSocket.open({ protocol: NETLINK_ROUTE })
  try {
    const exchange = new NetlinkExchange(netlink)
    return devices.flatMap((device) => [
      ...DIRECTIONS.flatMap((direction) => {
        const ids = [
          ...(tcx ? tcxQuery(device.index, direction).programIds : []),
          ...filterPrograms(exchange, device.index, CLSACT_PARENT[direction]),
        ]
        return foreign(`${device.name}/${direction}`, ids, [PACKET_PROGRAM, DROP_PROGRAM, STANDBY_PROGRAM])
      }),
      ...foreign(`${device.name}/xdp`, xdpOf(device), [XDP_PROGRAM]),
    ])
  } finally {
    netlink.close()
  }
}

/** At the root of the node's cgroups, where processes of all pods connect. `cgroup`: undefined where there is none. */
export function cgroupPrograms(cgroup: string | undefined): PlacedProgram[] {
  if (cgroup === undefined) return []
  return CGROUP_HOOKS.flatMap((hook) => foreign(`cgroup/${hook}`, cgroupIds(cgroup, hook), [new RegExp(`^${hook}$`)]))
}

function cgroupIds(cgroup: string, hook: (typeof CGROUP_HOOKS)[number]): readonly number[] {
  try {
    return cgroupQuery(cgroup, hook)
  } catch (thrown) {
    // a kernel without the hook has nothing there
    if (errorCode(thrown) === 'EINVAL') return []
    throw thrown
  }
}

function filterPrograms(exchange: NetlinkExchange, ifindex: number, parent: number): number[] {
  return exchange
    .dump({ what: 'list filters', type: RTM_GETTFILTER, payload: encodeFilterDump(ifindex, parent) })
    .flatMap(({ payload }) => decodeFilter(payload)?.programId ?? [])
}

function xdpOf({ index }: Interface): number[] {
  const id = xdpQuery(index)
  return id === undefined ? [] : [id]
}

/** One that has gone meanwhile is not there. */
function foreign(place: string, ids: readonly number[], ours: readonly RegExp[]): PlacedProgram[] {
  return ids.flatMap((id) => {
    const name = nameOf(id)
    return name === undefined || ours.some((pattern) => pattern.test(name)) ? [] : [{ place, name: name === '' ? `number ${id}` : name }]
  })
}

function nameOf(id: number): string | undefined {
  let program: BpfProgram
  try {
    program = BpfProgram.openId(id)
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  }
  try {
    return program.info().name
  } finally {
    program.close()
  }
}

/** Two folders deep: none of those that are known has its pins deeper. A folder of many is told once. */
export function pinFindings(bpffs: string): Finding[] {
  const paths = isBpffs(bpffs) ? namesIn(bpffs).flatMap((name) => [name, ...below(bpffs, name)]) : []
  const owners = Map.groupBy(
    paths.flatMap((path) => {
      const owner = ownerOfPin(path)
      return owner === undefined ? [] : [{ owner, path }]
    }),
    ({ owner }) => owner,
  )
  return [...owners].map(([owner, [first]]) => finding('foreign-pins', owner, `/sys/fs/bpf/${first?.path ?? ''}`))
}

/** Of tc's folder of maps that all programs share. */
function below(bpffs: string, name: string): string[] {
  return name === 'tc' ? namesIn(join(bpffs, 'tc/globals')).map((one) => `tc/globals/${one}`) : []
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT' || errorCode(thrown) === 'ENOTDIR') return []
    throw thrown
  }
}
