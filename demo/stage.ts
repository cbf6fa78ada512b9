// SPDX-License-Identifier: Apache-2.0
/** The cluster of the story: built, changed and taken away. Layer: demo. */
import { cpSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LabError } from '../lab/errors.ts'
import { Lab } from '../lab/lab.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { labPaths } from '../lab/paths.ts'
import { nodeNamed, podNamed } from '../lab/network/topology.ts'
import type { Endpoint } from '../lab/tools/address.ts'
import { parseMetrics } from './metrics.ts'
import { snapshot } from './snapshot.ts'

export type Family = 4 | 6

/** As demo/manifests say it. */
const NODE_PORT = 30080
const SERVICE = { 4: '10.96.0.80', 6: 'fd00:96::80' } as const
const METRICS_PORT = 9091

export const NODES = ['node-a', 'node-b'] as const

export class Stage {
  readonly lab: Lab
  readonly #manifests: string
  /** what the nodes looked like before their agents, as text by node */
  readonly #untouched: ReadonlyMap<string, string>

  private constructor(lab: Lab, manifests: string, untouched: ReadonlyMap<string, string>) {
    this.lab = lab
    this.#manifests = manifests
    this.#untouched = untouched
  }

  /** A lab with a copy of the manifests, agents ready. Throws what the lab throws, and leaves what was begun for
   * {@link Lab.remove}. */
  static async build(name: string, progress: (text: string) => void): Promise<Stage> {
    const manifests = join(labPaths(name).dir, 'manifests')
    mkdirSync(manifests, { recursive: true })
    cpSync(join(packageRoot(), 'demo/manifests'), manifests, { recursive: true })
    const lab = await Lab.build({ name, resources: manifests, agents: false, progress })
    const states = await Promise.all(NODES.map(async (node) => [node, await snapshot(lab, node)] as const))
    progress(`agents on ${NODES.join(' and ')}`)
    await lab.startAgents(true)
    return new Stage(lab, manifests, new Map(states))
  }

  /** The address itself, without a prefix length, of "client", "far", "node/NAME" or a pod. */
  addressOf(place: string, family: Family): string {
    const { topology } = this.lab
    const [kind, node] = place.split('/')
    const host =
      kind === 'client' || kind === 'far'
        ? topology[kind]
        : kind === 'node' && node !== undefined
          ? nodeNamed(topology, node)
          : podNamed(topology, `default/${place}`)
    const found = host.addresses.find((address) => address.includes(':') === (family === 6))
    if (found === undefined) throw new LabError(place, `no IPv${family} address`)
    return found.split('/')[0] ?? found
  }

  nodePort(node: string, proto: 'tcp' | 'udp', family: Family): Endpoint {
    return { proto, address: this.addressOf(`node/${node}`, family), port: NODE_PORT }
  }

  clusterIp(proto: 'tcp' | 'udp', family: Family): Endpoint {
    return { proto, address: SERVICE[family], port: 80 }
  }

  nodeOf(pod: string): string {
    return podNamed(this.lab.topology, `default/${pod}`).node
  }

  async metrics(node: string): Promise<Map<string, number>> {
    const page = await this.lab.agents.get({ node, port: METRICS_PORT, path: '/metrics' })
    if (page.status !== 0) throw new LabError(`agent of node ${node}`, `no metrics: ${page.text}`)
    return parseMetrics(page.text)
  }

  /** Moves the service's only endpoint to this pod, as the control plane would: one file replaced as a whole. */
  moveService(pod: string): void {
    const file = join(this.#manifests, 'web-endpoints.yaml')
    const original = readFileSync(join(packageRoot(), 'demo/manifests/web-endpoints.yaml'), 'utf8')
    const moved = original
      .replaceAll(this.addressOf('web-1', 4), this.addressOf(pod, 4))
      .replaceAll(this.addressOf('web-1', 6), this.addressOf(pod, 6))
      .replaceAll(this.nodeOf('web-1'), this.nodeOf(pod))
      .replaceAll('web-1', pod)
    writeFileSync(`${file}.new`, moved)
    renameSync(`${file}.new`, file)
  }

  /** What differs on a node from before there was an agent; empty: nothing. */
  async changedOn(node: string): Promise<string[]> {
    const before = this.#untouched.get(node)?.split('\n') ?? []
    const now = (await snapshot(this.lab, node)).split('\n')
    const gone = before.filter((line) => !now.includes(line)).map((line) => `- ${line}`)
    return [...gone, ...now.filter((line) => !before.includes(line)).map((line) => `+ ${line}`)]
  }
}
