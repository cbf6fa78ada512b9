// SPDX-License-Identifier: Apache-2.0
/** A cluster without an API server: agents that follow their FelixConfigurations when they come to it, a kube-proxy
 * with a pod for each node, and an operator that may be killed between any two of its writes. Layer: test. */
import type { Mode, NodeNetworkStatus } from '#lib/kube/objects/node-network-status.ts'
import { askedMode, ofNode, type Configuration, type Observed } from '#operator/switch/observed.ts'
import type { AskedSwitch, Step, SwitchWrite } from '#operator/switch/situation.ts'
import { nextStep, situationOf } from '#operator/switch/step.ts'

export const MINUTE = 60_000

export interface Machine {
  readonly name: string
  readonly uid: string
  isReady: boolean
  unreadySince: number
  isCordoned: boolean
  isOperators: boolean
  /** what its programs do */
  mode: Mode
  since: number
  proof: 'Running' | 'Proven' | 'Failed'
  at: number
  configurations: Readonly<Record<string, number>>
  /** what its watch has told it last, and it has not come to yet */
  heard: Pick<Machine, 'mode' | 'configurations'>
  /** its agent sees a kube-proxy */
  seesProxy: boolean
  /** as the API server has it; undefined: nothing was said yet */
  told: NodeNetworkStatus | undefined
  hasProxyPod: boolean
  proxySince: number
  joinedAt: number
  /** services do not answer there in this mode */
  broken: Mode | undefined
  /** it was away for so long that no one waits for it, and its agent has not looked since */
  isBehind: boolean
}

export class World {
  readonly machines = new Map<string, Machine>()
  default: { generation: number; mode: Mode | undefined } = { generation: 1, mode: 'Standard' }
  readonly overrides = new Map<string, Configuration>()
  proxy = { runs: true, isSettled: true }
  now = 0
  asked: AskedSwitch
  readonly steps: Step[] = []
  /** as the operator has found node ports of nodes after they changed */
  outside: Observed['outside'] = new Map()
  locks: Observed['locks'] = []
  /** what an operator must never do, and did */
  readonly faults: string[] = []
  /** nodes that there were */
  #made = 0
  /** nodes that were asked, by what asked */
  readonly #asks = new Map<string, number>()

  constructor(names: readonly string[], asked: Partial<AskedSwitch> = {}) {
    this.asked = {
      mode: 'BPF',
      managesKubeProxy: true,
      maxUnavailable: 1,
      canary: undefined,
      nodeTimeoutMs: 10 * MINUTE,
      askedAt: 0,
      generation: 1,
      retry: '',
      isPreflightPassed: true,
      ...asked,
    }
    for (const name of names) {
      const machine = this.join(name)
      machine.hasProxyPod = true
      this.follow(machine)
      this.prove(machine)
    }
  }

  join(name: string): Machine {
    const heard = this.#configured(name)
    const machine: Machine = {
      ...{ uid: `${name}-${++this.#made}`, joinedAt: this.now },
      ...{
        name,
        isReady: true,
        unreadySince: 0,
        isCordoned: false,
        isOperators: false,
        mode: heard.mode,
        since: this.now,
        proof: 'Running',
        at: this.now,
      },
      ...{
        configurations: {},
        heard,
        seesProxy: this.proxy.runs,
        told: undefined,
        hasProxyPod: false,
        proxySince: 0,
        broken: undefined,
        isBehind: false,
      },
    }
    this.machines.set(name, machine)
    return machine
  }

  /** The node is deleted, and made again under its name. */
  remake({ name }: Machine): Machine {
    this.#askAnew(name)
    return this.join(name)
  }

  /** The watch of its agent tells how FelixConfigurations are now. */
  hear(machine: Machine): void {
    if (machine.isReady) machine.heard = this.#configured(machine.name)
  }

  /** Its agent goes by what it has heard, and says so. */
  follow(machine: Machine): void {
    if (!machine.isReady) return
    const { mode, configurations } = machine.heard
    machine.configurations = configurations
    machine.seesProxy = this.proxy.runs || machine.hasProxyPod
    machine.isBehind &&= !this.#isCurrent(machine)
    if (mode !== machine.mode) Object.assign(machine, { mode, since: this.now, proof: 'Running', at: this.now })
    this.#tell(machine)
  }

  prove(machine: Machine): void {
    if (!machine.isReady) return
    machine.proof = machine.broken === machine.mode ? 'Failed' : 'Proven'
    machine.at = this.now
    this.#tell(machine)
  }

  /** Its agent starts again. */
  restart(machine: Machine): void {
    if (!machine.isReady) return
    Object.assign(machine, { proof: 'Running', at: this.now })
    this.hear(machine)
    this.follow(machine)
  }

  /** The controller of kube-proxy, and its pod on this node. */
  serveProxy(machine: Machine): void {
    this.proxy.isSettled = true
    if (!machine.isReady) return
    if (!machine.hasProxyPod) machine.proxySince = this.now
    machine.hasProxyPod = this.proxy.runs
  }

  /** The operator looks, and writes as many as it comes to. Returns what it was about to do. */
  operate(most = Infinity, order: (writes: readonly SwitchWrite[]) => readonly SwitchWrite[] = (writes) => writes): Step {
    const step = nextStep(situationOf(this.observed(), this.asked))
    this.steps.push(step)
    for (const write of order(step.writes).slice(0, most)) this.write(write)
    return step
  }

  observed(): Observed {
    const machines = [...this.machines.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
    return {
      nodes: machines.map(({ name, uid, isReady, unreadySince, isCordoned, isOperators, joinedAt, told }) => ({
        name,
        agentSince: joinedAt,
        uid,
        isReady,
        unreadySince,
        isCordoned,
        isOperators,
        status: told,
      })),
      default: { ...this.default, mark: undefined, isInherited: false, keepsProxyRules: false, isOurs: true },
      overrides: new Map(
        [...this.overrides.keys()].flatMap((name) => {
          const found = this.#overrideOf(name)
          return found === undefined ? [] : [[name, found] as const]
        }),
      ),
      proxy: {
        ...{
          action: 'node-selector',
          state: this.proxy.runs ? 'running' : 'stopped',
          what: 'kube-proxy',
          selector: '',
          manager: undefined,
        },
        ...{ canBeChanged: true, isSettled: this.proxy.isSettled, hasPods: true, isUnsaid: false },
        readySince: new Map(machines.flatMap(({ name, hasProxyPod, proxySince }) => (hasProxyPod ? [[name, proxySince] as const] : []))),
        pods: new Map(machines.flatMap(({ name, hasProxyPod, isReady }) => (hasProxyPod ? [[name, isReady] as const] : []))),
      },
      outside: this.outside,
      locks: this.locks,
      now: this.now,
    }
  }

  write(write: SwitchWrite): void {
    const before = new Map(this.#present().map((machine) => [machine.name, this.#modeOf(machine.name)]))
    const isInherited = write.kind === 'override' && this.#overrideOf(write.node)?.isInherited === true
    this.#apply(write)
    const moved = this.#present().filter(({ name }) => before.get(name) !== this.#modeOf(name))
    if (write.kind === 'default' && moved.length > 0) this.#fault('the default moves nodes', moved)
    if (write.kind === 'proxy' && !write.runs) {
      const needed = this.#present().filter(({ mode, proof }) => mode !== 'BPF' || proof === 'Failed')
      if (needed.length > 0) this.#fault('kube-proxy is taken from', needed)
    }
    // one that goes back may have come so late that its pod is still to come
    const isBack = write.kind === 'override' && write.mark?.failed !== undefined
    const isServed = ({ hasProxyPod }: Machine): boolean => this.proxy.runs && (hasProxyPod || isBack)
    const unserved = moved.filter((machine) => this.#modeOf(machine.name) === 'Standard' && !isServed(machine))
    if (unserved.length > 0) this.#fault('asked for Standard without a kube-proxy', unserved)
    if (write.kind !== 'override' || write.mark === undefined || write.mark.failed !== undefined) return
    // it was in that mode before: its name was asked
    if (isInherited && moved.length === 0) return
    const { generation, retry } = this.asked
    const key = [write.node, generation, retry].join()
    this.#asks.set(key, (this.#asks.get(key) ?? 0) + 1)
    if (this.#asks.get(key) !== 1) this.#fault('asked again without a reason', moved)
    const away = this.#present().filter(({ name, mode, proof, told }) => {
      // one that was made anew serves no one yet
      if (told === undefined) return false
      const mark = this.#overrideOf(name)?.mark
      return mark?.to === this.asked.mode && mark.failed === undefined && (mode !== mark.to || proof !== 'Proven') && name !== write.node
    })
    if (away.some((one) => one.proof === 'Failed' && one.mode === this.asked.mode && this.#isCurrent(one)))
      this.#fault('asked although one has failed', away)
    const silent = [...this.machines.values()].filter(({ isReady, unreadySince }) => !isReady && this.now - unreadySince < 10 * MINUTE)
    if (silent.length > 0) this.#fault('asked although one says nothing', silent)
    const most = this.asked.maxUnavailable
    if (typeof most === 'number' && away.length >= most) this.#fault(`asked beside ${away.length}`, away)
  }

  /** It goes by the FelixConfigurations as they are. */
  #isCurrent({ name, configurations }: Machine): boolean {
    return JSON.stringify(configurations) === JSON.stringify(this.#configured(name).configurations)
  }

  /** Those that are there, and are waited for. */
  #present(): readonly Machine[] {
    return [...this.machines.values()].filter(({ isReady, isBehind }) => isReady && !isBehind)
  }

  #fault(what: string, machines: readonly Machine[]): void {
    this.faults.push(`${what}: ${machines.map(({ name }) => name).join()}`)
  }

  #apply(write: SwitchWrite): void {
    switch (write.kind) {
      case 'default':
        if (this.default.mode !== write.mode) this.default = { generation: this.default.generation + 1, mode: write.mode }
        return
      case 'proxy':
        this.proxy = { runs: write.runs, isSettled: false }
        return
      case 'override': {
        const { node, mode, mark } = write
        const found = this.overrides.get(node)
        if (mode === undefined && mark === undefined) this.overrides.delete(node)
        else
          this.overrides.set(node, {
            generation: (found?.generation ?? 0) + Number(found?.mode !== mode || found === undefined),
            ...{ mode, mark, isInherited: false, keepsProxyRules: false, isOurs: true },
          })
      }
    }
  }

  /** Its kube-proxy and its agent come to all that is due but the proof. */
  come(machine: Machine): void {
    this.serveProxy(machine)
    this.hear(machine)
    this.follow(machine)
  }

  /** All that is due at each node. */
  round(): void {
    this.now += 1000
    for (const machine of this.machines.values()) {
      this.come(machine)
      this.prove(machine)
    }
  }

  /** Until the operator has nothing to do, and every agent has said all. */
  settle(most = 400): void {
    for (let round = 0, idle = 0; round < most && idle < 3; round++) {
      this.round()
      idle = this.operate().writes.length === 0 ? idle + 1 : 0
    }
  }

  /** Nodes that neither kube-proxy nor we serve. */
  unserved(): readonly string[] {
    return this.#present()
      .filter(({ mode }) => mode === 'Standard' && !this.proxy.runs)
      .map(({ name }) => name)
  }

  modes(): Readonly<Record<string, Mode>> {
    return Object.fromEntries([...this.machines].map(([name, { mode }]) => [name, mode]))
  }

  /** An administrator's own override. */
  pin(name: string, mode: Mode): void {
    this.overrides.set(name, {
      generation: (this.overrides.get(name)?.generation ?? 0) + 1,
      ...{ mode, mark: undefined, isInherited: false, keepsProxyRules: false, isOurs: false },
    })
    this.#askAnew(name)
  }

  /** It is asked once more for that. */
  #askAnew(name: string): void {
    for (const key of this.#asks.keys()) if (key.startsWith(`${name},`)) this.#asks.delete(key)
  }

  /** As it is the node's own. */
  #overrideOf(name: string): Configuration | undefined {
    const found = this.overrides.get(name)
    return found && ofNode(found, this.machines.get(name)?.uid)
  }

  #modeOf(name: string): Mode {
    return askedMode(name, this.observed())
  }

  #configured(name: string): Machine['heard'] {
    const own = this.overrides.get(name)
    const configurations = { default: this.default.generation, ...(own === undefined ? {} : { [`node.${name}`]: own.generation }) }
    return { mode: this.#modeOf(name), configurations }
  }

  #tell(machine: Machine): void {
    const { mode, since, proof, at, configurations, seesProxy } = machine
    const iso = (time: number): string => new Date(time).toISOString()
    machine.told = {
      version: 'v3.31.5',
      dataplane: { mode, since: iso(since), configurations },
      proof: {
        mode,
        state: proof,
        asked: 1,
        answered: Number(proof === 'Proven'),
        failed: proof === 'Failed' ? ['no answer'] : [],
        nodePorts: [],
        udpNodePorts: [],
        at: iso(at),
      },
      kubeProxy: seesProxy ? 'Present' : 'Absent',
      flows: undefined,
    }
  }
}
