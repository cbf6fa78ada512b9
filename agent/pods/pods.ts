// SPDX-License-Identifier: Apache-2.0
/** Gives pods their veths and addresses, for runtimes that ask by CNI. Layer: agent. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { NetlinkSocket } from '#native'
import { backoffMs } from '#lib/base/backoff.ts'
import { everyMs, systemClock } from '#lib/base/clock.ts'
import { errorText, NotYetError } from '#lib/base/errors.ts'
import type { Addr } from '#lib/base/ip.ts'
import { Notifier } from '#lib/base/async/wait.ts'
import type { NodeNetwork } from '#lib/model/node.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log, LogFields } from '#lib/obs/log.ts'
import type { Sink } from '#lib/store/source.ts'
import type { Store } from '#lib/store/store.ts'
import { OrphanedSandboxes } from '../cni/orphaned-sandboxes.ts'
import type { PodOverlaySink } from '../cni/pod-overlay-sink.ts'
import { AttachmentFiles } from '../cni/attachments.ts'
import { Installer } from '../cni/install/installer.ts'
import { CniError } from '../cni/cni-error.ts'
import type { Plugin } from '../cni/plugin.ts'
import { CniServer } from '../cni/server.ts'
import type { Config } from '../config/config.ts'
import { NETLINK_ROUTE, NetlinkExchange } from '../interfaces/netlink/exchange.ts'
import type { Datastore } from '../run/cluster-side.ts'
import type { AgentOptions } from '../run/options.ts'
import { cniFolder, cniFoldersFile, cniReadyFile } from '../run/state-files.ts'
import type { Dataplane } from '../dataplane/dataplane.ts'
import type { Ipam } from '../ipam/ipam.ts'
import type { PodClient } from '../proof/node-mode.ts'
import { cniPlugin, isNodeAnnounced, podIpam } from './cni-plugin.ts'
import type { CniOptions } from './cni-options.ts'
import { OTHERS_PODS, openProofPod } from './proof-pod.ts'

export interface PodsOptions {
  readonly options: AgentOptions
  readonly cni: CniOptions
  /** gets those that come this way */
  readonly attached: PodOverlaySink
  /** of the source of pods */
  readonly sink: Pick<Sink, 'apply'>
  readonly store: Store
  readonly log: Log
  readonly health: Health
  readonly dataplane: Pick<Dataplane, 'isReady' | 'missingOf' | 'devices'>
  /** addresses of the node's own devices */
  readonly held: () => readonly Addr[]
  /** interfaces differ from before */
  readonly interfaces: Notifier
  readonly config: () => Config | undefined
  /** undefined: there is no API server, and this node shares its blocks with no other node */
  readonly datastore: Datastore | undefined
}

/** Condition: runtimes can ask for pods. */
const LISTENING = 'cni.listening'
/** Condition: runtimes find the plugin and its configuration. */
const INSTALLED = 'cni.installed'
/** Condition: nothing is held for sandboxes that are gone. */
const COLLECTED = 'cni.collected'
const COLLECT_MS = 60_000
const COLLECT_AGAIN_MS = 5000
/** Between looks at what no event tells: files and the socket that other processes may remove, and the time to
 * collect. */
const LOOK_MS = 200
const LISTEN_AGAIN = { firstMs: 500, maxMs: 15_000 }

export class Pods {
  readonly #options: PodsOptions
  /** for calls that wait */
  readonly #changed = new Notifier()
  readonly #attachments: AttachmentFiles
  readonly #orphaned = new OrphanedSandboxes()
  readonly #installation: Installer
  /** undefined: another plugin gives pods their addresses */
  readonly #ipam: Ipam | undefined
  /** by condition, why it does not hold */
  readonly #failing = new Map<string, string>()
  /** ms of the clock: at once, for the agent before may have died between two steps; then more often than the period if
   * need be */
  #collectAt = 0
  /** of this node, to the others */
  #said: NodeNetwork | undefined
  #wasAnnounced = false
  #wasLocked = false

  constructor(options: PodsOptions) {
    this.#options = options
    const { cni, log } = options
    const { stateDir, keepDir } = options.options
    this.#attachments = new AttachmentFiles(join(cniFolder(stateDir), 'sandboxes'))
    this.#ipam = cni.chained ? undefined : podIpam(options)
    this.#installation = new Installer({ ...cni, log, readyFile: cniReadyFile(cni.socket), foldersFile: cniFoldersFile(keepDir) })
    // a node whose runtime cannot ask for pods is not ready; a node that holds too many addresses for a while is
    for (const condition of [LISTENING, INSTALLED]) options.health.expect(condition, 'readiness')
    options.health.expect(COLLECTED, 'none')
  }

  /** A pass is over. */
  news(): void {
    this.#changed.notify()
  }

  /** For the agent's own questions. Rejects with the reason where there can be none. */
  async openProofPod(signal: AbortSignal): Promise<PodClient> {
    if (this.#ipam === undefined) throw new NotYetError(OTHERS_PODS)
    return await openProofPod({ ...this.#options, ipam: this.#ipam, changed: this.#changed, clock: systemClock, signal })
  }

  /** Serves until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { cni } = this.#options
    using netlink = closing(NetlinkSocket.open({ protocol: NETLINK_ROUTE }))
    const stop = new AbortController()
    const plugin = this.#plugin(new NetlinkExchange(netlink.socket), stop.signal)
    plugin.start()
    await using server = new CniServer({ path: cni.socket, call: (line) => plugin.call(line) })
    using stack = new DisposableStack()
    // a waiting call keeps the process alive, and the server and the collector wait for it
    const end = (): void => {
      stop.abort(new CniError('tryAgain', 'the agent of this node stops'))
    }
    signal.addEventListener('abort', end)
    stack.defer(end)
    await Promise.all([
      this.#listen(server, signal),
      everyMs(systemClock, { ms: LOOK_MS, signal, run: () => this.#install() }),
      everyMs(systemClock, { ms: LOOK_MS, signal, run: () => this.#collectWhenDue(plugin) }),
    ])
  }

  #plugin(netlink: NetlinkExchange, stop: AbortSignal): Plugin {
    const of = { attachments: this.#attachments, ipam: this.#ipam, changed: this.#changed, binDir: () => this.#installation.binDir }
    return cniPlugin({ ...this.#options, ...of, netlink, stop })
  }

  /** Tried again for as long as it cannot be, and when the socket has been taken away. */
  async #listen(server: CniServer, signal: AbortSignal): Promise<void> {
    const isOver = (): boolean => signal.aborted
    for (let attempt = 0; !isOver();) {
      if (server.isThere || (await this.#start(server))) attempt = 0
      else attempt++
      await systemClock.sleep(attempt === 0 ? LOOK_MS : backoffMs(LISTEN_AGAIN, attempt - 1), signal).catch(() => undefined)
    }
  }

  async #start(server: CniServer): Promise<boolean> {
    const { cni, log } = this.#options
    try {
      await server.start()
      this.#works(LISTENING)
      log.info({ socket: cni.socket }, 'cni.listening')
      return true
    } catch (thrown) {
      this.#fails(LISTENING, thrown, { socket: cni.socket })
      return false
    }
  }

  /** Says it once for each reason. */
  #fails(condition: string, thrown: unknown, fields: LogFields): void {
    const reason = errorText(thrown)
    if (this.#failing.get(condition) === reason) return
    this.#failing.set(condition, reason)
    this.#options.health.fail(condition, reason)
    this.#options.log.error({ ...fields, error: thrown }, `${condition}.failed`)
  }

  #works(condition: string): void {
    this.#failing.delete(condition)
    this.#options.health.pass(condition)
  }

  /** Once pods can be served, and again when another process has removed the files. A runtime that finds them calls the
   * node ready. */
  async #install(): Promise<void> {
    const { cni, dataplane } = this.#options
    const isAnnounced = isNodeAnnounced(this.#options)
    // an announcement of this node leads to no pass, so waiting calls are woken here
    if (isAnnounced !== this.#wasAnnounced) this.#changed.notify()
    this.#wasAnnounced = isAnnounced
    if (!dataplane.isReady || !isAnnounced) return
    try {
      await this.#installation.renew()
      this.#works(INSTALLED)
    } catch (thrown) {
      this.#fails(INSTALLED, thrown, { folders: [cni.binDir, cni.confDir] })
    }
  }

  async #collectWhenDue(plugin: Plugin): Promise<void> {
    const { store, options } = this.#options
    const said = store.snapshot.nodeNetworks.get(options.node)
    // a NodeNetwork that was created again, or cut, lacks blocks, and the other nodes send nothing to those
    const before = this.#said?.blocks.length ?? Infinity
    if (said !== this.#said && said !== undefined && said.blocks.length < before) this.#collectAt = 0
    this.#said = said
    // what was given back meanwhile is still written down
    const isLocked = this.#options.datastore?.whyLocked() !== undefined
    if (this.#wasLocked && !isLocked) this.#collectAt = 0
    this.#wasLocked = isLocked
    if (!store.synced || systemClock.now() < this.#collectAt) return
    this.#collectAt = systemClock.now() + COLLECT_MS
    await this.#collect(plugin)
  }

  /** Collects what no runtime will ever take away; retried as long as it fails. */
  async #collect(plugin: Plugin): Promise<void> {
    const { health, log, attached } = this.#options
    const failed: unknown[] = []
    try {
      const all = this.#attachments.all()
      const seen = all.map((one) => ({
        containerId: one.containerId,
        hasNetns: existsSync(one.netns),
        hasPod: attached.known({ namespace: one.namespace, name: one.pod }) !== undefined,
      }))
      const gone = new Set(this.#orphaned.orphans(seen, systemClock.now()))
      for (const one of all.filter(({ containerId }) => gone.has(containerId))) {
        log.warn({ containerId: one.containerId, namespace: one.namespace, pod: one.pod }, 'sandbox.orphaned')
        await plugin.remove(one).catch((thrown: unknown) => failed.push(thrown))
      }
      await plugin.collect()
      // one that cannot be taken away holds up no other
      if (failed.length > 0) throw failed[0]
      health.pass(COLLECTED)
    } catch (thrown) {
      this.#collectAt = systemClock.now() + COLLECT_AGAIN_MS
      health.fail(COLLECTED, errorText(thrown))
      log.warn({ error: thrown }, 'cni.gc-failed')
    }
  }
}

function closing(socket: NetlinkSocket): Disposable & { readonly socket: NetlinkSocket } {
  return {
    socket,
    [Symbol.dispose]: () => {
      socket.close()
    },
  }
}
