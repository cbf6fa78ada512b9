// SPDX-License-Identifier: Apache-2.0
/** A lab with an API server, to whose pods steps happen, and which says when all agents have followed. Layer: soak. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Semaphore } from '#lib/base/async/semaphore.ts'
import { IP_BLOCK, parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import type { Leftover } from '../../lab/network/down.ts'
import { Lab } from '../../lab/lab.ts'
import { labPaths } from '../../lab/paths.ts'
import { listAt, textAt } from '../../lab/raw.ts'
import { nodeObject } from '../../testkit/lab/manifests.ts'
import { TestService } from '../../testkit/lab/test-service.ts'
import { ANCHORS } from '../cluster.ts'
import type { Changed } from '../run.ts'
import { SoakError } from '../errors.ts'
import { eventually } from '../eventually.ts'
import { SoakedNode } from '../node.ts'
import { settleNode, type SoakOptions } from '../soak.ts'
import { addressFaults, Uniqueness } from './addresses.ts'
import { NODES, podManifest, SERVICE, STAYING } from './cluster.ts'
import { LabApiServer } from './api-server.ts'
import { Kubelet, type Made } from './kubelet.ts'
import { PodPlaces } from './places.ts'
import { Probes } from './probes.ts'
import { BIN_DIR, CONF_DIR } from './shim.ts'
import { CALM, type PodStep, type Visitor } from './steps.ts'

const POD = { apiVersion: 'v1', kind: 'Pod', namespace: 'default' } as const
/** ms in which the nodes' pods are as the API server wants them: a call of the plugin waits for 30 s at most. */
const FOLLOW_MS = 60_000
/** ms in which addresses come back without a DEL: agents garbage-collect them once a minute. */
export const COLLECT_MS = 75_000

export class PodSoak implements AsyncDisposable, Changed<PodStep> {
  readonly lab: Lab
  readonly nodes: readonly SoakedNode[]
  readonly places: PodPlaces
  readonly probes: Probes
  readonly uniqueness = new Uniqueness()
  readonly #folder: string
  readonly #kept: string
  readonly #control: LabApiServer
  readonly #kubelets: ReadonlyMap<string, Kubelet>
  readonly #visitors = new Map<string, Visitor>()
  readonly #service: TestService
  readonly #stop = new AbortController()
  /** of starting and killing, by node */
  readonly #turns = new Map<string, Semaphore>()
  /** nodes whose agents were killed → steps until they start again */
  readonly #away = new Map<string, number>()
  readonly #starting = new Set<string>()
  /** since all was calm */
  readonly #killing: Promise<void>[] = []
  #serverBack = 0
  #isCalm = true
  #puts: Promise<void> = Promise.resolve()

  private constructor(lab: Lab, control: LabApiServer, options: { readonly folder: string; readonly kept: string }) {
    this.lab = lab
    this.#control = control
    this.#folder = options.folder
    this.#kept = options.kept
    this.nodes = NODES.map((name) => new SoakedNode(lab, name, { kind: 'kubeconfig', file: control.kubeconfig }))
    this.places = new PodPlaces(lab)
    this.probes = new Probes(lab, this.places)
    this.#kubelets = new Map(NODES.map((node) => [node, this.#kubelet(node)]))
    const put = (name: string, objects: readonly object[]): void => {
      this.#puts = control.write(() => control.apply(name, objects))
    }
    this.#service = new TestService({ put, remove: () => undefined }, SERVICE)
  }

  /** With agents ready; pods come with {@link begin}. `kept`: a folder for logs. */
  static async up({ name, kept, say }: SoakOptions): Promise<PodSoak> {
    const folder = mkdtempSync(join(tmpdir(), 'netplane-soak-'))
    try {
      const resources = join(folder, 'nodes')
      mkdirSync(resources)
      for (const node of NODES) writeFileSync(join(resources, `${node}.json`), JSON.stringify(nodeObject(node)))
      const agentFlags = ['--kubeconfig', join(folder, 'agent.kubeconfig'), '--cni-conf-dir', CONF_DIR, '--cni-bin-dir', BIN_DIR]
      const lab = await Lab.up({ name, resources, agents: false, servers: false, agentFlags, progress: say })
      say('etcd and kube-apiserver')
      const control = await LabApiServer.start(lab, folder)
      say(`agents: ${lab.agentCommand.join(' ')} ${agentFlags.join(' ')}`)
      await lab.startAgents(true)
      return new PodSoak(lab, control, { folder, kept })
    } catch (thrown) {
      keepLogs(name, kept, folder)
      await Lab.remove(name)
      rmSync(folder, { recursive: true })
      throw thrown
    }
  }

  /** Throws SoakError when there is no such node. */
  node(name: string): SoakedNode {
    const found = this.nodes.find((node) => node.name === name)
    if (found === undefined) throw new SoakError(`node ${name}`, ['is not in the lab'])
    return found
  }

  /** Agents may follow later, and so do writes while there is no API server. */
  async perform(step: PodStep): Promise<void> {
    this.#isCalm = false
    await this.#comeBack()
    switch (step.kind) {
      case 'come':
        for (const pod of step.pods) await this.#control.write(() => this.#make(pod))
        return
      case 'go':
        for (const name of step.pods) await this.#control.write(() => this.#delete(name))
        return
      case 'replace':
        await this.#control.write(async () => {
          await this.#control.remove({ ...POD, name: step.pod.name }, 0)
          await this.#make(step.pod)
        })
        return
      case 'server':
      case 'store':
        if (this.#control.isAway) return
        await this.#control.kill(step.kind)
        this.#serverBack = step.back
        return
      case 'agent':
        await this.#kill(step.node, step.back)
        return
      case 'gc':
        if (this.lab.agents.pid(step.node) !== undefined) await this.#kubelets.get(step.node)?.collect()
        return
      case 'policies':
        await this.#control.write(() => this.#control.apply('policies', step.objects))
        return
      case 'service':
        this.#service.put(step.change)
        await this.#puts
    }
  }

  /** Waits until the API server and all agents are there, all pods as they should be, every address with its holder,
   * and every table as a fresh compile says. Throws SoakError with what is not. */
  async settle(): Promise<void> {
    await this.#calm()
    await eventually('pods', FOLLOW_MS, () => [...this.#kubelets.values()].flatMap((kubelet) => kubelet.unfinished()))
    await this.#addresses()
    // once a minute nodes give back blocks that have been empty for a while
    await Promise.all(this.nodes.map((node) => settleNode(node, true)))
    // only now: before, rules that have just changed may be on their way yet
    const checked = await Promise.all([...this.#kubelets.values()].map((kubelet) => kubelet.check()))
    if (checked.flat().length > 0) throw new SoakError('what the plugin finds', checked.flat())
  }

  async restartAll(): Promise<number> {
    await this.#calm()
    const before = await this.#blocks()
    for (const { name } of this.nodes) await this.#kill(name, 0)
    await this.#calm()
    const after = new Set(await this.#blocks())
    return before.filter((cidr) => !after.has(cidr)).length
  }

  /** Nodes keep blocks for a while after the last address of them came back, and others know the way there. */
  async belongings(node: SoakedNode): Promise<readonly string[]> {
    const blocks = await this.#blocks()
    return (await node.belongings()).filter((line) => !blocks.some((cidr) => line.startsWith(`${cidr} via `)))
  }

  /** "ADD 31, ADD cut 4": of all nodes. */
  tally(): string {
    const sums = new Map<string, number>()
    for (const kubelet of this.#kubelets.values()) for (const [key, count] of kubelet.counts) sums.set(key, (sums.get(key) ?? 0) + count)
    return [...sums].map(([key, count]) => `${key} ${count}`).join(', ')
  }

  async down(): Promise<readonly Leftover[]> {
    this.#stop.abort()
    keepLogs(this.lab.name, this.#kept, this.#folder)
    await this.#control[Symbol.asyncDispose]()
    const left = await this.lab.down()
    rmSync(this.#folder, { recursive: true, force: true })
    return left
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.down()
  }

  /** The pods that stay are there, and what they have is a place. Throws SoakError when they do not come. */
  async begin(): Promise<void> {
    for (const kubelet of this.#kubelets.values()) void kubelet.run(this.#stop.signal)
    this.#service.put(CALM)
    await this.#puts
    const missing = (): string[] => STAYING.filter((pod) => !this.#made().some((made) => made.pod === pod && made.state === 'ready'))
    await eventually('pods that stay', FOLLOW_MS, missing)
    for (const [node, kubelet] of this.#kubelets) for (const made of kubelet.made) this.places.add(node, made)
    await Promise.all(ANCHORS.map((pod) => this.places.serve(pod)))
  }

  #made(): readonly Made[] {
    return [...this.#kubelets.values()].flatMap(({ made }) => made)
  }

  #kubelet(node: string): Kubelet {
    return new Kubelet({
      lab: this.lab,
      node,
      client: this.#control.clientOf(node),
      visitor: ({ metadata }) => this.#visitors.get(metadata.uid ?? ''),
      mayCut: () => !this.#isCalm,
      killAgent: (name) => {
        if (this.#isCalm) return
        const killing = this.#kill(name, 1)
        // a later wait for it hears of a failure
        killing.catch(() => undefined)
        this.#killing.push(killing)
      },
      onReady: (name, made) => {
        this.uniqueness.note(made, this.#made())
        if (STAYING.includes(made.pod)) return
        // a later sandbox of its name takes its veth away
        const isStill = (): boolean => this.#kubelets.get(name)?.made.findLast(({ pod }) => pod === made.pod) === made
        this.probes.start(name, made, isStill)
      },
    })
  }

  async #make(visitor: Visitor): Promise<void> {
    const { name, node, hue } = visitor
    const manifest = podManifest({ name, node, labels: { kind: 'visitor', hue } })
    // by create: the pod of that name that is to go may still be there
    const made = await this.#control.createAgain(manifest)
    this.#visitors.set(made.metadata.uid ?? '', visitor)
  }

  async #delete(name: string): Promise<void> {
    const visitor = [...this.#visitors.values()].findLast((one) => one.name === name)
    await this.#control.remove({ ...POD, name }, visitor?.graceful === false ? 0 : undefined)
  }

  async #kill(node: string, back: number): Promise<void> {
    await this.#turnOf(node).run(async () => {
      this.#away.set(node, back)
      this.#starting.delete(node)
      await this.lab.agents.stop(node, 'SIGKILL')
    })
  }

  async #comeBack(): Promise<void> {
    for (const [node, steps] of this.#away) {
      if (steps > 0) this.#away.set(node, steps - 1)
      else await this.#start(node)
    }
    if (this.#control.isAway && this.#serverBack-- <= 0) await this.#control.bringBack()
  }

  async #start(node: string): Promise<void> {
    await this.#turnOf(node).run(async () => {
      this.#away.delete(node)
      this.#starting.add(node)
      await this.lab.agents.start(node)
    })
  }

  /** One that is killed by a call that is cut may just be starting. */
  #turnOf(node: string): Semaphore {
    const turn = this.#turns.get(node) ?? new Semaphore(1)
    this.#turns.set(node, turn)
    return turn
  }

  /** Nothing is killed any more, and the API server and all agents are there. */
  async #calm(): Promise<void> {
    this.#isCalm = true
    await Promise.all(this.#killing.splice(0))
    await this.#control.bringBack()
    for (const node of [...this.#away.keys()]) await this.#start(node)
    await Promise.all([...this.#starting].map((node) => this.lab.agents.waitReady(node)))
    this.#starting.clear()
  }

  /** Ranges of all blocks that nodes have. */
  async #blocks(): Promise<string[]> {
    return (await this.#control.client.list(IP_BLOCK)).map((block) => textAt(block, 'spec.cidr') ?? '')
  }

  /** Addresses that a call has left, without a DEL, come back when agents garbage-collect them. */
  async #addresses(): Promise<void> {
    await eventually('addresses', COLLECT_MS, () => this.addressFaults())
  }

  async addressFaults(): Promise<string[]> {
    const { client } = this.#control
    const [blocks, pods] = [await client.list(IP_BLOCK), await client.list(POD)]
    return addressFaults({
      made: new Map([...this.#kubelets].map(([node, kubelet]) => [node, kubelet.made])),
      blocks: blocks.map((block) => parseIPBlock({ ...block })),
      told: new Map(pods.map((pod) => [pod.metadata.name, listAt(pod, 'status.podIPs').map((entry) => textAt(entry, 'ip') ?? '')])),
    })
  }
}

function keepLogs(lab: string, kept: string, folder: string): void {
  const { logs } = labPaths(lab)
  if (existsSync(logs)) cpSync(logs, kept, { recursive: true })
  for (const name of ['etcd', 'kube-apiserver']) {
    const log = join(folder, 'plane', `${name}.log`)
    if (existsSync(log)) cpSync(log, join(kept, `${name}.log`))
  }
}
