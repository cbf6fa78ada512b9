// SPDX-License-Identifier: Apache-2.0
/** The node's data plane as a whole: is given what is wanted, and brings the kernel there pass by pass.
 * Layer: agent/dataplane. */
import { inSlices, type Sliced } from '#lib/base/async/slices.ts'
import { errorText } from '#lib/base/errors.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import type { Configuration, DesiredChange, DesiredNode, Fragment } from '#agent/compile/desired.ts'
import type { NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import { Attachments, interfacePrograms } from './attach/attachments.ts'
import { SocketLb } from './attach/socket-lb.ts'
import { ProgramLoader, type ProgramLoaderOptions } from './loader.ts'
import { DeviceReport } from './host/device-report.ts'
import { chosenDevices, decideDevices, deviceSysctls } from './host/devices.ts'
import type { InterfaceHook } from './attach/hook.ts'
import type { AllHooks } from './attach/kernel-hooks.ts'
import {
  connectPrograms,
  dropProgram,
  hookPrograms,
  xdpPrograms,
  TABLES,
  type GenerationTables,
  type TableName,
} from './generation-tables.ts'
import { earliest } from './reconcile/loop.ts'
import { conditionOf, Reconciler } from './reconcile/reconciler.ts'
import { missingStep, type PodPlace } from './pod-readiness.ts'
import { unmatchedHostEndpoints } from './policy/unmatched-host-endpoints.ts'
import { DriftReport } from './drift-report.ts'
import type { MapRead } from './maps/map-table.ts'
import { routerSysctls } from './host/router-advertisements.ts'
import { Routes } from './host/routes.ts'
import { SELF_OWNER } from './host/node-rows.ts'
import { Sysctls, type SysctlOptions } from './host/sysctls.ts'
import { TunnelDevice } from './host/tunnel-device.ts'
import { whyNoTunnelChecksums, type Features } from './programs/kernel-features.ts'
import { passOrder } from './pass-order.ts'
import { XdpAttachments } from './attach/xdp.ts'

export interface DataplaneOptions extends ProgramLoaderOptions {
  readonly interfaces: Interfaces
  /** disposed of with the data plane */
  readonly hooks: AllHooks
  readonly netlink: NetlinkExchange
  readonly features: Features
  readonly sysctls: SysctlOptions
  /** The next change that is given is to be everything, and soon. */
  readonly requestResync: () => void
}

const LOOK_AGAIN_MS = 1000
/** between one that stands by and the next: meanwhile others get their turn */
const STANDBY_MS = 100

export class Dataplane implements Disposable {
  readonly phases: Reconciler
  readonly #options: DataplaneOptions
  readonly #current: ProgramLoader
  readonly #hooks: Attachments<InterfaceHook>
  readonly #connect: SocketLb
  readonly #xdp: XdpAttachments
  readonly #routes: Routes
  readonly #sysctls: Sysctls
  readonly #tunnel: TunnelDevice
  readonly devices: DeviceReport
  readonly #strays: ReturnType<typeof unmatchedHostEndpoints>
  readonly #repairs: DriftReport
  #node: DesiredNode | undefined
  #queued: DesiredChange[] = []
  #changedInterfaces = new Set<string>()
  #follow = false
  readonly #readBack = new Set<TableName>()
  #adopted = false
  #ready = false
  /** hooks or sysctls are another than we have seen, perhaps by our own doing */
  #isTold = false
  #toldAt = -Infinity

  constructor(options: DataplaneOptions) {
    const { log } = options
    this.#options = options
    this.#current = new ProgramLoader(options)
    this.#hooks = new Attachments({ name: 'hooks', hooks: options.hooks.interfaces, log })
    this.#connect = new SocketLb({ hooks: options.hooks, log })
    this.#xdp = new XdpAttachments({
      hooks: options.hooks.xdp,
      log,
      wanted: () => this.#current.loaded && xdpPrograms(this.#current.loaded),
    })
    this.#routes = new Routes({ netlink: options.netlink, log })
    this.#sysctls = new Sysctls(options.sysctls)
    this.devices = new DeviceReport(options)
    this.#strays = unmatchedHostEndpoints(options)
    this.#repairs = new DriftReport({ log, hooks: [this.#hooks, this.#xdp] })
    const loaded = (): GenerationTables | undefined => this.#current.loaded
    this.#tunnel = new TunnelDevice({
      ...{ netlink: options.netlink, interfaces: options.interfaces, hooks: options.hooks.tunnel, log },
      program: () => this.#current.loaded && dropProgram(this.#current.loaded),
      enter: (index) => this.#current.loaded?.enterTunnelBy(index),
      whyNoChecksums: whyNoTunnelChecksums(options.features),
      onDrift: (lack) => this.#repairs.note('tunnel-device', { lack }),
    })
    const host = { sysctls: this.#sysctls, routes: this.#routes, tunnel: this.#tunnel }
    const phases = passOrder({ loaded, ...host, hooks: this.#hooks, connect: this.#connect, xdp: this.#xdp })
    this.phases = new Reconciler({ phases, log, health: options.health })
  }

  get current(): ProgramLoader {
    return this.#current
  }

  get loaded(): GenerationTables | undefined {
    return this.#current.loaded
  }

  /** How packets of the tunnel leave; undefined: there is none. */
  get tunnelWay(): TunnelDevice['way'] {
    return this.#tunnel.way
  }

  /** everything that was wanted at the start is in place */
  get isReady(): boolean {
    return this.#ready
  }

  /** hooks that run the wanted program, also those of cgroups */
  get attached(): number {
    return this.#hooks.settled + this.#connect.settled + this.#xdp.settled
  }

  /** of pods that are wanted, there or not */
  get workloads(): DesiredNode['workloads'] {
    return this.#node?.workloads ?? []
  }

  /** What the kernel still lacks of this pod, in words (`pod-readiness.ts`); undefined: nothing. */
  missingOf(pod: PodPlace): string | undefined {
    const { interfaces } = this.#options
    return missingStep(pod, { interfaces, address: this.#current.loaded?.address, isSettled: (place) => this.#hooks.isSettled(place) })
  }

  /** Host endpoints of this node that protect nothing: by ref, why. */
  get strays(): ReadonlyMap<string, string> {
    return this.#strays.all
  }

  /** how often something was found other than we had left it, by part */
  get repairs(): ReadonlyMap<string, number> {
    return this.#repairs.counts
  }

  interfacesChanged(names: ReadonlySet<string>): void {
    for (const name of names) this.#changedInterfaces.add(name)
    this.#tunnel.markStale()
    // one that came again under its name has the kernel's own: no drift
    this.#sysctls.markStale()
    // the kernel drops routes of IPv4 with their device and says nothing
    if (this.devices.list().some(({ iface, use }) => use === 'host' && names.has(iface.name))) this.#routes.markStale()
  }

  /** Compares hooks, pins and the node's sysctls with the kernel; true when something has to be put right by a pass.
   * Hooks of interfaces are suspects of the drift report first: an interface that went takes its programs along. */
  checkHooks(): boolean {
    if (this.#current.loaded === undefined) return false
    const found = { hooks: this.#connect.check(), pins: this.#current.checkPins(), sysctls: this.#sysctls.check() }
    for (const [part, things] of Object.entries(found)) if (things.length > 0) this.#repairs.note(part, { [part]: things })
    const toJudge = this.#repairs.lookAtHooks()
    const standing = this.#options.hooks.standbys?.complete !== false
    return this.#tunnel.check() || toJudge || !standing || Object.values(found).some((things) => things.length > 0)
  }

  /** The kernel tells of a change to hooks or sysctls: the next pass looks at them, but once a second at most, for
   * another program may put back what we do. */
  hooksOrSysctlsChanged(): void {
    this.#isTold = true
  }

  /** Has the table read back in the next pass. */
  checkTable(name: TableName): void {
    if (this.#current.loaded !== undefined) this.#readBack.add(name)
  }

  /** Has routes listed, and sysctls looked at, in the next pass. */
  checkRoutes(): void {
    this.#routes.markStale()
    this.#sysctls.markStale()
    this.#tunnel.tryAgain()
  }

  /** Takes effect with the next pass. */
  setDesired(change: DesiredChange): void {
    this.#queued = change.complete ? [change] : [...this.#queued, change]
    if (change.node === undefined) return
    this.#node = change.node
    this.#routes.setDesired(change.node.routes, change.node.host.elsewhere)
    const { tunnelPort, tunnelChecksum } = change.node.knobs
    this.#tunnel.setDesired(change.node.tunnelled ? tunnelPort : undefined, tunnelChecksum)
    this.#follow = true
  }

  /** Before the first pass, which will ask for the same: resolves once the kernel is at work on the programs. */
  begin(configuration: Configuration): Promise<void> {
    return this.#current.begin(configuration)
  }

  /** Every row that was given so far is in the kernel, whatever else may have failed. */
  get isWritten(): boolean {
    const { loaded } = this
    return this.#queued.length === 0 && loaded !== undefined && TABLES.every((name) => loaded.tables[name].pending.updates === 0)
  }

  /** Resolves with the ms after which what failed is to be tried again, undefined when nothing did. */
  async pass(): Promise<number | undefined> {
    if (this.#node === undefined) return undefined
    if (this.#takeResyncRequest()) {
      this.#options.requestResync()
      return 0
    }
    if (this.#current.isWaiting) await this.#takeUp()
    const { knobs, mapSizes } = this.#node
    await this.#current.ensure({ knobs, mapSizes })
    const { loaded } = this.#current
    if (loaded === undefined) {
      if (this.#current.isWaiting) return 0
      // no programs are loaded that could take the changes, and it may be a while: once some are, they get everything
      this.#queued = []
      return this.#current.retryMs()
    }
    const toldMs = this.#lookAtTold()
    // the kernel is at it while rows are encoded
    const reading = this.#readTables(loaded)
    // what feeding throws comes first
    reading.catch(() => undefined)
    await inSlices(this.#feedRows(loaded), this.#options.clock)
    const known = await this.#look(loaded, reading)
    // at once for rows and hooks: no program is to be where its rows are not
    const changed = this.#changedInterfaces
    this.#changedInterfaces = new Set()
    for (const name of changed) loaded.rows.interfaceChanged(name)
    if (this.#follow || changed.size > 0) this.#feedDevices(loaded, this.#node)
    this.#repairs.judgeHooks()
    const report = this.phases.run()
    if (known && loaded.policy.queue.isWhole) this.#strays.note(loaded.policy.hosts.strays)
    if (known) this.#sayAdopted(loaded, report.done)
    if (known && report.retryMs === undefined) this.#sayReady()
    if (this.#allRunWhatIsLoaded()) await this.#current.settle()
    const standbyMs = report.retryMs === 0 ? undefined : this.#standBy()
    const policyMs = loaded.policy.epoch.dueMs
    return earliest(report.retryMs, toldMs, standbyMs, this.#current.retryMs(), policyMs, known ? undefined : LOOK_AGAIN_MS)
  }

  /** What the kernel has told of is looked at, or is in the ms that this returns. */
  #lookAtTold(): number | undefined {
    if (!this.#isTold) return undefined
    const now = this.#options.clock.now()
    const early = this.#toldAt + LOOK_AGAIN_MS - now
    if (early > 0) return early
    this.#isTold = false
    this.#toldAt = now
    this.#sysctls.lookAtAll()
    this.checkHooks()
    return undefined
  }

  /** One at a time, and when nothing else waits, least of all a pod's start. Returns the ms until the next one. */
  #standBy(): number | undefined {
    try {
      return this.#options.hooks.standbys?.attachNext((place) => this.#hooks.programAt(place)) === true ? STANDBY_MS : undefined
    } catch (thrown) {
      this.#options.log.warn({ error: thrown }, 'hook.standby-failed')
      return STANDBY_MS
    }
  }

  /** Lets go of every handle; what is pinned goes on. */
  [Symbol.dispose](): void {
    this.#current[Symbol.dispose]()
    this.#options.hooks[Symbol.dispose]()
  }

  /** New programs may come with new tables, which are empty; and a step of policy that fails is mended by a whole. */
  #takeResyncRequest(): boolean {
    if (this.#queued.some(({ complete }) => complete)) return false
    return this.#current.isWaiting || this.loaded?.policy.queue.takeWholeRequest(this.#options.clock.now()) === true
  }

  /** The tables are filled again. Reading back finds what the kernel has already. */
  async #takeUp(): Promise<void> {
    await this.#current.takeUp()
    for (const name of TABLES) this.#readBack.add(name)
    this.#tunnel.markStale()
    this.#follow = true
  }

  *#feedRows(loaded: GenerationTables): Sliced<void> {
    for (let [change] = this.#queued; change !== undefined; [change] = this.#queued) {
      const { complete, fragments, policy } = change
      // first, so that new pods wait for what is announced
      loaded.policy.queue.enqueue(policy, complete)
      for (const fragment of fragments) {
        this.#setFragment(loaded, fragment)
        yield
      }
      if (complete) loaded.rows.complete(new Set([SELF_OWNER, ...fragments.map(({ owner }) => owner)]))
      // not before: until then not all that was given is in the tables
      this.#queued = this.#queued.filter((one) => one !== change)
    }
  }

  /** What depends on interfaces and routes. */
  #feedDevices(loaded: GenerationTables, node: DesiredNode): void {
    const veths = loaded.veths()
    // programs are not to go from a pod that is running and forgotten
    this.#follow = veths === undefined
    if (veths === undefined) return
    const decisions = decideDevices(node, this.#options.interfaces, { ways: this.#routes.ways, veths })
    this.devices.note(decisions)
    const devices = chosenDevices(decisions)
    loaded.setDevices(devices, node.nodePortAddresses)
    this.#hooks.setDesired(interfacePrograms(devices, hookPrograms(loaded)))
    const hostFirst = [...devices.filter(({ kind }) => kind === 'host'), ...devices.filter(({ kind }) => kind === 'workload')]
    this.#options.hooks.standbys?.setDesired(interfacePrograms(hostFirst, hookPrograms(loaded, 'standby_')))
    this.#connect.setDesired(connectPrograms(loaded), node.cgroup)
    const ofDevices = { ...deviceSysctls(devices, this.#options.interfaces), ...routerSysctls(node, decisions) }
    this.#sysctls.setDesired({ ...node.sysctls, ...ofDevices })
  }

  /** A row that no struct can hold costs that object its rows, not the others theirs. */
  #setFragment(loaded: GenerationTables, fragment: Fragment): void {
    try {
      loaded.rows.setFragment(fragment)
    } catch (thrown) {
      this.#options.log.error({ owner: fragment.owner, error: thrown }, 'rows.rejected')
    }
  }

  /** Those that are not known, or not to be trusted any more. */
  #readTables({ tables }: GenerationTables): Promise<readonly (readonly [TableName, MapRead])[]> {
    return Promise.all([...this.#readBack].map(async (name) => [name, await tables[name].read()] as const))
  }

  /** Compares with what was read of tables, and reads routes that are not known; parts that are not known write
   * nothing. False when something could not be read. */
  async #look(loaded: GenerationTables, reading: Promise<readonly (readonly [TableName, MapRead])[]>): Promise<boolean> {
    try {
      for (const [name, read] of await reading) {
        const drift = await loaded.tables[name].readBack(read)
        this.#readBack.delete(name)
        // what was there before the first read-back is no drift
        if (this.#current.settled && drift.missing + drift.changed + drift.foreign > 0) this.#repairs.note(name, { ...drift })
      }
      const { ways } = this.#routes
      const gone = this.#routes.readBack()
      if (gone > 0) this.#repairs.note('host-routes', { gone })
      if (!deepEqual(ways, this.#routes.ways)) this.#follow = true
      this.#options.health.pass(conditionOf('read-back'))
      return true
    } catch (thrown) {
      this.#options.health.fail(conditionOf('read-back'), errorText(thrown))
      this.#options.log.error({ error: thrown }, 'read-back.failed')
      return false
    }
  }

  /** Once, after the first whole pass: what was found as it should be, and what had to be written. */
  #sayAdopted({ tables, generation }: GenerationTables, done: ReadonlyMap<string, number>): void {
    if (this.#adopted) return
    this.#adopted = true
    const rows = Object.fromEntries(TABLES.map((name) => [name, tables[name].size]))
    const adopted = { programs: generation.adopted, hooks: this.#hooks.adopted, connect: this.#connect.adopted }
    this.#options.log.info({ adopted, rows, routes: this.#routes.installed, written: Object.fromEntries(done) }, 'dataplane.adopted')
  }

  /** Once: everything that was wanted at the start is in place. */
  #sayReady(): void {
    if (this.#ready) return
    this.#ready = true
    this.#options.health.pass(conditionOf('applied'))
    this.#options.log.info(
      { hooks: this.#hooks.settled, connect: this.#connect.settled, sinceStartMs: Math.round(performance.now()) },
      'dataplane.ready',
    )
  }

  #allRunWhatIsLoaded(): boolean {
    const all = [this.#hooks, this.#connect, this.#xdp]
    return all.every(({ complete, removals }) => complete && !removals.pending())
  }
}
