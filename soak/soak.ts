// SPDX-License-Identifier: Apache-2.0
/** A lab to which steps happen, and which says when its nodes have followed. Layer: soak. */
import { cpSync, existsSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Leftover } from '../lab/network/down.ts'
import { Lab } from '../lab/lab.ts'
import { labPaths } from '../lab/paths.ts'
import { TestService } from '../testkit/lab/test-service.ts'
import { ANCHORS, clusterObjects, type ClusterNow, MOVERS, NODES, OTHERS, SERVICE } from './cluster.ts'
import type { Changed } from './run.ts'
import { SoakError } from './errors.ts'
import { eventually } from './eventually.ts'
import { SoakedNode } from './node.ts'
import { FIRST, type Step } from './changes/steps.ts'

/** ms in which every node has followed, whatever changed: programs may have to be loaded on all of them at once. */
const FOLLOW_MS = 30_000

export interface SoakOptions {
  readonly name: string
  readonly kept: string
  readonly say: (text: string) => void
}

export class Soak implements AsyncDisposable, Changed<Step> {
  readonly lab: Lab
  readonly nodes: readonly SoakedNode[]
  readonly #resources: string
  readonly #kept: string
  readonly #services = new Map<number, TestService>()
  /** nodes whose agents were killed → steps until they start again */
  readonly #away = new Map<string, number>()
  /** started again, and not yet known to be ready */
  readonly #starting = new Set<string>()
  #cluster: ClusterNow = { felix: {}, visitors: [], labels: {} }
  #marker: readonly object[] = []
  #configurations = 0
  #moving: string = MOVERS[0]

  private constructor(lab: Lab, resources: string, kept: string) {
    this.lab = lab
    this.#resources = resources
    this.#kept = kept
    this.nodes = NODES.map((name) => new SoakedNode(lab, name, { kind: 'directory', directory: resources }))
    this.#service(SERVICE.marker)
  }

  /** Throws SoakError when there is no such node. */
  node(name: string): SoakedNode {
    const found = this.nodes.find((node) => node.name === name)
    if (found === undefined) throw new SoakError(`node ${name}`, ['is not in the lab'])
    return found
  }

  /** A lab with its agents ready, and the services with a promise. `kept`: a folder for its logs. Throws what the
   * lab throws. */
  static async up({ name, kept, say }: SoakOptions): Promise<Soak> {
    const resources = mkdtempSync(join(tmpdir(), 'netplane-soak-'))
    try {
      writeList(resources, { file: 'cluster', objects: clusterObjects({ felix: {}, visitors: [], labels: {} }) })
      const soak = new Soak(await Lab.up({ name, resources, nodes: [...NODES], progress: say }), resources, kept)
      for (const step of FIRST) await soak.perform(step)
      return soak
    } catch (thrown) {
      await Lab.remove(name)
      rmSync(resources, { recursive: true })
      throw thrown
    }
  }

  /** Resolves when it is done; agents may follow later. */
  async perform(step: Step): Promise<void> {
    for (const [node, steps] of this.#away) {
      if (steps > 0) this.#away.set(node, steps - 1)
      else await this.#start(node)
    }
    switch (step.kind) {
      case 'service':
        this.#service(step.index).put(step.change)
        return
      case 'no-service':
        if (this.#services.delete(step.index)) rmSync(this.#file(`s${step.index}`))
        return
      case 'configuration':
        this.#configure(step.felix)
        return
      case 'others':
      case 'policies':
      case 'sets':
        this.#put(step.kind, step.objects)
        return
      case 'labels':
        this.#cluster = { ...this.#cluster, labels: step.labels }
        this.#writeCluster()
        return
      case 'move':
        await this.#move(step.to)
        return
      case 'visitors':
        await this.#startAll()
        this.#cluster = { ...this.#cluster, visitors: step.pods }
        this.#writeCluster()
        await this.lab.sync()
        return
      case 'kill':
        await this.lab.agents.stop(step.node, 'SIGKILL')
        this.#starting.delete(step.node)
        this.#away.set(step.node, step.back)
    }
  }

  /** Waits until all agents are ready, every table is as a fresh compile says, and every program has the settings of
   * now. Throws SoakError with what differs. */
  async settle(): Promise<void> {
    await this.#startAll()
    await Promise.all(this.nodes.map((node) => settleNode(node)))
  }

  /** Kills all agents and waits for new ones. */
  async restartAll(): Promise<number> {
    for (const { name } of this.nodes) await this.lab.agents.stop(name, 'SIGKILL')
    for (const { name } of this.nodes) this.#away.set(name, 0)
    await this.#startAll()
    return 0
  }

  async belongings(node: SoakedNode): Promise<readonly string[]> {
    return await node.belongings()
  }

  tally(): string {
    return ''
  }

  /** Takes the lab away, but for its logs, which go into the folder; the answer is what could not be. Safe to call
   * twice. */
  async down(): Promise<readonly Leftover[]> {
    const { logs } = labPaths(this.lab.name)
    if (existsSync(logs)) cpSync(logs, this.#kept, { recursive: true })
    rmSync(this.#resources, { recursive: true, force: true })
    return await this.lab.down()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.down()
  }

  /** Endpoint and its address: the old pod hears nothing any more from the moment at which the change is written. */
  async #move(to: string): Promise<void> {
    await this.settle()
    const from = this.#moving
    this.#moving = to
    await this.lab.mustRun(to, ['nft', '-f', '-'], { input: 'add table inet deaf\ndelete table inet deaf\n' })
    const deaf = [
      'add table inet deaf',
      'add chain inet deaf input { type filter hook input priority 0; }',
      'add rule inet deaf input udp dport 8080 drop',
    ]
    await this.lab.mustRun(from, ['nft', '-f', '-'], { input: deaf.join('\n') })
    this.#service(SERVICE.moving).put({ endpoints: [to] })
    await this.settle()
  }

  #configure(felix: object): void {
    this.#cluster = { ...this.#cluster, felix }
    const pods = [...ANCHORS, ...OTHERS]
    // written with it: where these rows have arrived, so has the configuration
    this.#service(SERVICE.marker).put({ endpoints: pods.slice(0, 1 + (++this.#configurations % pods.length)) })
  }

  async #start(node: string): Promise<void> {
    this.#away.delete(node)
    this.#starting.add(node)
    await this.lab.agents.start(node)
  }

  async #startAll(): Promise<void> {
    for (const node of [...this.#away.keys()]) await this.#start(node)
    await Promise.all([...this.#starting].map((node) => this.lab.agents.waitReady(node)))
    this.#starting.clear()
  }

  #service(index: number): TestService {
    const known = this.#services.get(index)
    if (known !== undefined) return known
    const put = (file: string, objects: readonly object[]): void => {
      if (index !== SERVICE.marker) return this.#put(file, objects)
      this.#marker = objects
      this.#writeCluster()
    }
    const made = new TestService({ put, remove: () => undefined }, index)
    this.#services.set(index, made)
    return made
  }

  #writeCluster(): void {
    this.#put('cluster', [...clusterObjects(this.#cluster), ...this.#marker])
  }

  #put(file: string, objects: readonly object[]): void {
    writeList(this.#resources, { file, objects })
  }

  #file(name: string): string {
    return join(this.#resources, `${name}.json`)
  }
}

/** `isMoving`: what is wanted changes by itself, and is compiled again for each look. Throws SoakError with what
 * differs when it does not follow in time. */
export async function settleNode(node: SoakedNode, isMoving = false): Promise<void> {
  const first = await node.wanted()
  await eventually(`node ${node.name}`, FOLLOW_MS, async () => await node.differences(isMoving ? await node.wanted() : first))
}

/** Replaces the file, whole and at once. */
function writeList(resources: string, { file, objects }: { readonly file: string; readonly objects: readonly object[] }): void {
  const path = join(resources, `${file}.json`)
  writeFileSync(`${path}.new`, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
  renameSync(`${path}.new`, path)
}
