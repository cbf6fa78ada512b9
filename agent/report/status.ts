// SPDX-License-Identifier: Apache-2.0
/** What the API server hears of this node: what others need to reach it, conditions of its Node and pods, events
 * about what is refused, ClusterInformation. Layer: agent. */
import { randomUUID } from 'node:crypto'
import type { Backoff } from '#lib/base/backoff.ts'
import type { Clock } from '#lib/base/clock.ts'
import { isAnnounced, ownNode } from '#lib/model/node.ts'
import { INTERFACE_PREFIX } from '#lib/model/pod.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import type { Store } from '#lib/store/store.ts'
import type { Config } from '../config/config.ts'
import { generationsOf } from '../config/layers.ts'
import type { AgentRole } from '../run/options.ts'
import { answerOf, type EndpointOf } from '../proof/ask.ts'
import { asksOf, endpointsNow, type AsksInput } from '../proof/asks.ts'
import { NodeMode, type NodeModeOptions } from '../proof/node-mode.ts'
import { keepsPodsAway } from './own-node.ts'
import type { PolicyReport } from './policies.ts'
import { ANNOUNCED } from '../http/proxy-health.ts'
import type { SourceReport } from './sources.ts'
import { ClusterFacts } from '../status/cluster-information.ts'
import { Events } from '../status/events.ts'
import { NodeCondition } from '../status/node-condition.ts'
import { NodeModeStatus } from '../status/node-mode-status.ts'
import { interfacesOf, OwnNetwork } from '../status/node-network.ts'
import { Outbox, type Subject } from '../status/outbox.ts'
import { PodConditions } from '../status/pod-conditions.ts'
import { StartupTaint } from '../status/startup-taint.ts'
import { endpointRefusals, firewallRefusals, refusalsOf, type Refusal } from '../status/refusals.ts'
import { silentNodes } from './silent-nodes.ts'
import type { Interface } from '../interfaces/table.ts'
import type { StatusApi } from '../status/status-api.ts'
import type { DataplaneSetup } from '../run/dataplane-setup.ts'

export interface StatusOptions {
  readonly api: StatusApi
  /** why objects of ours must not be written; undefined: they may */
  readonly whyLocked: () => string | undefined
  readonly node: string
  readonly version: string
  readonly clock: Clock
  readonly store: Pick<Store, 'snapshot' | 'synced'>
  readonly book: Pick<SourceReport, 'refused'>
  readonly policies: Pick<PolicyReport, 'wrong' | 'isKnown'>
  /** endpoints of this node whose rules are not all looked at: by ref, what becomes of them */
  readonly cuts: () => ReadonlyMap<string, string> | undefined
  readonly health: Health
  readonly log: Log
  /** the node was, under an agent before, since it was started */
  readonly wasReady: boolean
  /** undefined: the kernel does not run our programs */
  readonly running: Pick<DataplaneSetup, 'dataplane' | 'monitor' | 'sweep' | 'handOver'> | undefined
  /** undefined as well then */
  readonly openPod: NodeModeOptions['openPod'] | undefined
  readonly config: () => Config | undefined
  readonly duties: AgentRole
  /** of the agents */
  readonly daemonSet?: { readonly namespace: string; readonly name: string } | undefined
  /** what other programs' firewalls drop, a line each */
  readonly firewalls: () => readonly string[]
  /** why the API server is asked at the address of its service; undefined: it is not */
  readonly byService: string | undefined
}

const NETWORK_RETRY: Backoff = { firstMs: 1000, maxMs: 10_000 }

export interface Status {
  readonly outboxes: readonly Outbox[]
  /** undefined: the kernel does not run our programs */
  readonly mode: NodeMode | undefined
}

/** Of an agent that has an API server: with manifests in a directory there is no server to report to. */
export function statusOf(options: StatusOptions): Status {
  const { api, node, version, clock, store, health, log, wasReady, running, openPod, config } = options
  const { snapshot } = store
  const wall = (): number => clock.wall()
  const isReady = (): boolean => running?.dataplane.isReady === true
  const takesPods = (): boolean => keepsPodsAway(health).length === 0
  const daemonSet = options.daemonSet && { apiVersion: 'apps/v1', kind: 'DaemonSet', ...options.daemonSet }
  const unlessLocked = (subject: Subject): Subject => ({
    name: subject.name,
    due: (now) => (options.whyLocked() === undefined ? subject.due(now) : []),
  })
  const devices = (): readonly Interface[] | undefined => running?.monitor.interfaces.all()
  const podDevices = (): ReadonlySet<string> => new Set(running?.dataplane.workloads.map(({ iface }) => iface))
  const nodes = (): Iterable<string> => snapshot.nodes.keys()
  const network = new OwnNetwork({
    api,
    node,
    self: () => (store.synced ? ownNode(snapshot, node) : undefined),
    said: () => snapshot.nodeNetworks.get(node),
    // in whose network is no tunnel of ours
    held: () => (options.duties.makesRoutes ? devices()?.flatMap(({ addresses }) => addresses) : []),
    takesTunnel: () => running?.dataplane.isReady === true,
    interfaces: () => interfacesOf(devices() ?? [], podDevices()),
  })
  const mode = running && openPod && new NodeMode({ clock, log, openPod, ...modeOf(options, running) })
  const facts = new Outbox({
    ...{ clock, health, log },
    subjects: [
      ...(mode === undefined ? [] : [unlessLocked(new NodeModeStatus({ api, node, version, ...modeStatusOf(options, mode) }))]),
      new NodeCondition({
        api,
        node,
        wall,
        wasReady,
        unready: () => health.unready().map(({ name, reason }) => `${name}: ${reason}`),
        takesPods,
        isKnown: () => !store.synced || ownNode(snapshot, node) !== undefined,
      }),
      new StartupTaint({
        api,
        node,
        isTainted: () => ownNode(snapshot, node)?.awaitsAgent === true,
        serves: () => isReady() && running?.dataplane.isWritten === true && takesPods(),
      }),
      unlessLocked(new ClusterFacts({ api, node, version, isReady, nodes: () => snapshot.nodes, newGuid: randomUUID, daemonSet })),
      new Events({ api, node, nodes, wall, refusals: () => refusals(options) }),
      new PodConditions({
        api,
        node,
        wall,
        isReady,
        pods: () => snapshot.podsOn(node),
        interfacePrefix: () => config()?.compile.interfacePrefix ?? INTERFACE_PREFIX,
        missingOf: (place) => running?.dataplane.missingOf(place),
      }),
    ],
  })
  const announced = new Outbox({
    ...{ clock, health, log, subjects: [unlessLocked(network)], condition: ANNOUNCED, retry: NETWORK_RETRY },
    // pods wait for it that are ours
    gate: options.duties.servesPods ? 'readiness' : 'none',
    lacks: () => (isAnnounced(snapshot, node) ? undefined : 'other nodes have not heard of the addresses and ranges of this one'),
  })
  return { outboxes: [announced, facts], mode }
}

type Running = NonNullable<StatusOptions['running']>

function modeOf({ store, node, config }: StatusOptions, { dataplane }: Running): Omit<NodeModeOptions, 'clock' | 'log' | 'openPod'> {
  const input = (): AsksInput => ({ snapshot: store.snapshot, node, excluded: config()?.compile.services.excluded ?? [] })
  const endpointOf: EndpointOf = (flow) => dataplane.current.flows?.destinationOf(flow)
  return {
    ask: (place, how, socketOf) => answerOf(place, how, { endpointOf, socketOf }),
    written: () => (dataplane.isReady && dataplane.isWritten ? config()?.compile.services.mode : undefined),
    asks: () => asksOf(input()),
    endpointsOf: (ask) => endpointsNow(ask, input()),
  }
}

function modeStatusOf({ store: { snapshot }, node, running }: StatusOptions, mode: NodeMode) {
  return {
    isAnnounced: () => snapshot.nodeNetworks.has(node),
    inMode: () => mode.current,
    generations: () => generationsOf(snapshot.felixConfigurations, node),
    hasProxy: () => running?.handOver.isPresent,
    otherFlows: () => {
      const census = running?.sweep.census
      return mode.current?.mode === 'Standard' ? census?.fromNetwork : census?.proxied
    },
  }
}

/** Before all is known, objects may be missing that others rest on, and it is not decided what becomes of a policy. */
function refusals({ node, store, book, policies, cuts, running, firewalls, byService }: StatusOptions): readonly Refusal[] {
  const found = [...firewallRefusals(node, firewalls()), ...endpointRefusals(node, byService)]
  if (!store.synced || !policies.isKnown) return found
  const now = { refused: book.refused, policies: policies.wrong, strays: running?.dataplane.strays, cuts: cuts() }
  return [...refusalsOf({ node, ...now, silent: silentNodes(store.snapshot, node) }), ...found]
}
