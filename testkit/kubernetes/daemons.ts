// SPDX-License-Identifier: Apache-2.0
/** Kubernetes' programs in places of a lab: they outlive the process that started them, and end with the lab.
 * Layer: testkit. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { labCgroup } from '../../lab/processes/cgroup.ts'
import { daemonPid, ensureDaemon, logTail, stopDaemon } from '../../lab/processes/daemon.ts'
import type { Lab } from '../../lab/lab.ts'
import type { Entry } from '../../lab/processes/launch.ts'
import { requireHolder } from '../../lab/processes/place-holders.ts'
import { nodeNamed } from '../../lab/network/topology.ts'

/** Where one runs: with the control plane, or on a node. */
export type Seat = 'fabric' | { readonly node: string }

export class Daemons {
  readonly #lab: Lab
  readonly #folder: string

  /** `folder`: for their logs. */
  constructor(lab: Lab, folder: string) {
    this.#lab = lab
    this.#folder = folder
    mkdirSync(folder, { recursive: true })
  }

  /** Its process id; nothing happens when it runs. `env` comes on top of our own. */
  async start(seat: Seat, command: readonly string[], options: { readonly name: string; readonly env?: Readonly<Record<string, string>> }) {
    return await ensureDaemon({
      subject: options.name,
      entry: this.#entry(seat, options.name),
      command,
      log: this.log(seat, options.name),
      env: { ...process.env, ...options.env },
    })
  }

  /** False when none ran. What it has started goes with it. */
  async stop(seat: Seat, name: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<boolean> {
    return await stopDaemon(this.#cgroup(seat, name), signal, 10_000)
  }

  pid(seat: Seat, name: string): number | undefined {
    return daemonPid(this.#cgroup(seat, name))
  }

  log(seat: Seat, name: string): string {
    return join(this.#folder, seat === 'fabric' ? `${name}.log` : `${name}-${seat.node}.log`)
  }

  logEnd(seat: Seat, name: string): string {
    return `${name}: ${logTail(this.log(seat, name), 8)}`
  }

  #entry(seat: Seat, name: string): Entry {
    const { topology } = this.#lab
    const cgroup = this.#cgroup(seat, name)
    if (seat === 'fabric') return { cgroup, netns: topology.fabric.netns, holder: undefined }
    return { cgroup, netns: nodeNamed(topology, seat.node).netns, holder: requireHolder(topology.lab, seat.node) }
  }

  #cgroup(seat: Seat, name: string): string {
    return join(labCgroup(this.#lab.name), seat === 'fabric' ? '_fabric' : seat.node, name)
  }
}
