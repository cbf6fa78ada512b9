// SPDX-License-Identifier: Apache-2.0
/** Pods of the plugin as places of a lab: where traffic comes from and goes to. Layer: soak. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'
import type { Lab } from '../../lab/lab.ts'
import { toolCommand } from '../../lab/paths.ts'
import type { Spawner } from '../../lab/traffic/traffic.ts'
import { PORTS } from '../../testkit/lab/manifests.ts'
import { SoakError } from '../errors.ts'
import type { Made } from './kubelet.ts'
import { NETNS_DIR } from './shim.ts'

interface Place {
  readonly node: string
  readonly made: Made
}

/** Time says nothing of packets on a machine with much to do; the pod's TCP counts what it had to send once more. */
const SENT_AGAIN = 'while read -r -a field; do [ "${field[0]}" = Tcp: ] && count=${field[12]}; done < /proc/net/snmp; echo "$count"'

export class PodPlaces implements Spawner {
  readonly #lab: Lab
  readonly #places = new Map<string, Place>()

  constructor(lab: Lab) {
    this.#lab = lab
  }

  /** From now on its name is a place. */
  add(node: string, made: Made): void {
    this.#places.set(made.pod, { node, made })
  }

  spawn(place: string, command: readonly string[]): ChildProcess {
    const pod = this.#places.get(place)
    if (pod === undefined) return this.#lab.spawn(place, command)
    return this.#lab.spawn(`node/${pod.node}`, inside(pod.made, command))
  }

  /** Answers on all ports from now on; ends with the lab. Throws SoakError when it does not. */
  async serve(pod: string): Promise<void> {
    const addresses = this.#places.get(pod)?.made.addresses ?? []
    const listen = PORTS.flatMap((port) => ['tcp', 'udp'].flatMap((proto) => ['--listen', `${proto}:${port}`]))
    const child = this.spawn(pod, [...toolCommand('echo'), '--name', pod, ...listen, ...addresses.flatMap((one) => ['--address', one])])
    if (child.stdout === null) throw new SoakError(`pod ${pod}`, ['has no output'])
    const said = await Promise.race([once(child.stdout, 'data').then(() => 'listening'), once(child, 'exit').then(() => 'ended')])
    if (said === 'ended') throw new SoakError(`pod ${pod}`, ['its server has ended'])
    child.unref()
  }

  /** Why the first packets of a pod of this node do not arrive, by TCP at each address; empty: they do, and their
   * answers. */
  async obstacle({ node, made }: Place, addresses: readonly string[], port: number): Promise<string> {
    const tries = addresses.map((address) => `exec 3<>/dev/tcp/${address}/${port} || exit`)
    const { status, stdout, stderr } = await this.#lab.run(
      `node/${node}`,
      inside(made, ['timeout', '30', 'bash', '-c', [...tries, SENT_AGAIN].join('\n')]),
    )
    if (status !== 0) return `exit ${status ?? 'by signal'} ${stderr.trim()}`
    return stdout.trim() === '0' ? '' : `segments sent again: ${stdout.trim()}`
  }

  /** What the programs of a node have dropped so far, and why. */
  async drops(node: string): Promise<string> {
    const { stdout } = await this.#lab.run(`node/${node}`, [process.execPath, join(packageRoot(), 'dist/cli/main.js'), 'bpf', 'counters'])
    return stdout.trim().replaceAll(/\s*\n\s*/g, '; ')
  }
}

function inside(made: Made, command: readonly string[]): string[] {
  return ['nsenter', `--net=${NETNS_DIR}/${made.containerId}`, '--', ...command]
}
