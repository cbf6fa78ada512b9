// SPDX-License-Identifier: Apache-2.0
/** Before agents come: every node and the cluster are looked at, and nothing else is made while something is in the
 * way. And an endpoint of the API server that is new: every node tries it. Layer: operator (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { finding, PEERS_TIMEOUT_S, type Finding, type ProbeGroup } from '#lib/preflight/findings.ts'
import type { PreflightResults } from '#lib/preflight/results.ts'
import type { Computed } from '#lib/render/computed.ts'
import type { Endpoint } from '#lib/render/input.ts'
import { renderPreflight, type PreflightPeer } from '#lib/render/preflight-pod.ts'
import type { ComponentState } from '#lib/control/rollout.ts'
import { endpointFindings } from './endpoint-findings.ts'
import { nodeAddresses } from './node-addresses.ts'
import { needlessOverlays } from './needless-overlays.ts'
import { NodeRun, type NodeRunState } from './node-run.ts'
import { findingTexts, verdictOf, type FindingTexts, type Verdict } from './verdict.ts'

export interface PreflightStepInput {
  /** UID of the Installation: what was asked for another one says nothing */
  readonly installation: string
  readonly namespace: string
  readonly image: string
  readonly computed: Computed
  /** of the tunnel between nodes; undefined: the agents' default */
  readonly vxlanPort: number | undefined
  /** undefined: the service's own address is used, and not tried */
  readonly endpoint: Endpoint | undefined
  /** of the service default/kubernetes */
  readonly serviceAddresses: readonly string[]
  /** UID of the namespace kube-system: of this cluster and no other */
  readonly cluster: string
  /** those that are there, and those that are to be made */
  readonly pools: readonly ApiObject[]
  /** those that may have the endpoint's address */
  readonly endpointPods: readonly ApiObject[]
  readonly pods: readonly ApiObject[]
  readonly nodes: readonly ApiObject[]
  readonly now: number
  readonly wall: number
}

export interface PreflightStep extends Verdict {
  /** of nodes and of the cluster */
  readonly findings: FindingTexts
  /** what it needs in the cluster; none once it has passed */
  readonly objects: readonly ApiObject[]
}

export interface PreflightKind {
  readonly name: string
  readonly groups: readonly ProbeGroup[]
  /** what the API server tells beside the nodes */
  readonly clusterFindings: readonly Finding[]
}

const MOST_PATIENT = 3

export class Preflight {
  #run = new NodeRun()
  #passed: { readonly question: string; readonly told: Omit<PreflightStep, 'objects'> } | undefined
  /** what all nodes have come to, the last time that they were asked */
  #refused: { readonly question: string; readonly state: ComponentState } | undefined

  /** What has passed once is not asked again, as long as it is the same question. */
  step(input: PreflightStepInput, { name, groups, clusterFindings }: PreflightKind): PreflightStep {
    const { installation, namespace, image, computed, vxlanPort, endpoint, serviceAddresses, pods, nodes, now, wall } = input
    const asked = { namespace, image, computed, vxlanPort, endpoint, serviceAddresses, groups, name }
    // nodes that come or go are asked without asking the others anew
    const question = JSON.stringify([installation, renderPreflight({ ...asked, peers: [], run: '' })])
    if (this.#passed?.question === question) return { ...this.#passed.told, objects: [] }
    const own = pods.filter(({ metadata }) => metadata.labels?.['app.kubernetes.io/name'] === name)
    const run = this.#run.step({ question, pods: own, nodes, now, wall })
    const overlays = run.isOver && computed.cni === 'Netplane' ? needlessOverlays(run.results.facts, input.pools) : []
    const places = endpointFindings(input, run.isOver ? run.results.facts : undefined)
    const all = [...clusterFindings, ...places, ...otherClusters(run.results, input.cluster), ...overlays]
    const told = { ...verdictOf(run, all), findings: findingTexts(run.results.findings, all) }
    if (told.isPassed) this.#passed = { question, told }
    const objects = renderPreflight({
      ...asked,
      peers: groups.includes('vxlan') ? nodes.map(peerOf) : [],
      run: run.run,
      // on a busy cluster pods of nodes begin further apart
      peersTimeoutS: PEERS_TIMEOUT_S * Math.min(run.tries, MOST_PATIENT),
    })
    const state = told.isPassed ? told.state : this.#standing(question, run, told.state)
    return { ...told, state, objects: told.isPassed ? [] : objects }
  }

  /** While nodes are asked once more, what they have said stands. */
  #standing(question: string, { results, isOver }: NodeRunState, state: ComponentState): ComponentState {
    if (isOver || results.failed.size > 0) {
      this.#refused = { question, state }
      return state
    }
    if (this.#refused?.question !== question) return state
    return { ...this.#refused.state, ...(state.progressing === undefined ? {} : { progressing: state.progressing }) }
  }
}

/** What answers with the cluster's own certificate may still be another, made from the same authority. */
function otherClusters({ facts }: PreflightResults, cluster: string): readonly Finding[] {
  const others = new Set([...facts.values()].flatMap(({ cluster: found }) => (found === undefined || found === cluster ? [] : [found])))
  return [...others].map((other) => finding('endpoint-other-cluster', 'the endpoint', other, cluster))
}

function peerOf(node: ApiObject): PreflightPeer {
  return { name: node.metadata.name, addresses: nodeAddresses(node) }
}
