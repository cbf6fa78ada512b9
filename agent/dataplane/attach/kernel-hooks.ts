// SPDX-License-Identifier: Apache-2.0
/** Every sort of place where our programs run, by the best means that this kernel has. Layer: agent/dataplane. */
import { BpfLink } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import type { WantedProgram } from './attachments.ts'
import { CgroupAttachments, CgroupLinks, type CgroupPlace } from './cgroup.ts'
import { ClsactHooks } from './clsact.ts'
import type { Hooks, InterfaceHook, Place } from './hook.ts'
import { LinkPins } from './link-pins.ts'
import { Standbys } from './standbys.ts'
import { hasTcx, TcxHooks } from './tcx.ts'
import { XdpHooks } from './xdp.ts'

/** Lets go of its handles when disposed of; what is attached stays. */
export interface AllHooks extends Disposable {
  readonly interfaces: Hooks<InterfaceHook>
  /** behind those of interfaces; undefined before tcx, where the kernel tells of what is removed */
  readonly standbys: Standbys | undefined
  readonly xdp: Hooks<Place>
  /** of the device that announces the tunnel's port */
  readonly tunnel: Hooks<InterfaceHook>
  /** of a cgroup; `sample`: one that is wanted there, to find out how programs get there */
  cgroup(directory: string, sample: WantedProgram<CgroupPlace> | undefined): Hooks<CgroupPlace>
}

/** `pins`: folder of links, made when the first one is pinned. */
export function kernelHooks(pins: string, interfaces: Interfaces): AllHooks {
  const links = new LinkPins(pins)
  const standbys = hasTcx() ? new Standbys() : undefined
  return {
    interfaces: standbys === undefined ? ClsactHooks.ofPackets(interfaces) : new TcxHooks(links, standbys),
    standbys,
    xdp: new XdpHooks(interfaces),
    tunnel: ClsactHooks.ofDrop(interfaces),
    cgroup: (directory, sample) => {
      const pinned = new CgroupLinks(links, directory)
      const takesLinks = pinned.list().length > 0 || (sample !== undefined && canLink(directory, sample))
      return takesLinks ? pinned : new CgroupAttachments(directory)
    },
    [Symbol.dispose]: () => {
      links[Symbol.dispose]()
      standbys?.[Symbol.dispose]()
    },
  }
}

/** Tries, for an instant: the program finds no service in the maps yet, or does what it will do anyway. */
function canLink(directory: string, sample: WantedProgram<CgroupPlace>): boolean {
  try {
    BpfLink.attachCgroup(sample.program.handle, directory, sample.place.hook).close()
    return true
  } catch (thrown) {
    if (errorCode(thrown) === 'EINVAL' || errorCode(thrown) === 'E2BIG') return false
    throw thrown
  }
}
