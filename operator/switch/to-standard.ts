// SPDX-License-Identifier: Apache-2.0
/** From us to kube-proxy: kube-proxy first, then every node is held where it is, the default, and the nodes one after
 * the other. Layer: operator (pure). */
import { defaultMode, type NodeFound, type Observed } from './observed.ts'
import { follow, stepOf, type Situation, type Step, type SwitchWrite } from './situation.ts'

export function toStandard(situation: Situation): Step {
  const { observed } = situation
  if (observed.proxy.state !== 'running') return proxyBack(situation)
  if (defaultMode(observed) === 'BPF') return beforeDefault(situation)
  const served = new Set(observed.nodes.filter((node) => isServedBy(node, observed)).map(({ name }) => name))
  return follow(situation, (name) => served.has(name))
}

/** kube-proxy does not run: without it no node may go. */
function proxyBack({ observed: { proxy }, asked }: Situation): Step {
  if (proxy.isUnsaid) return stepOf('ProxyFirst')
  const isOurs = proxy.state === 'stopped' && asked.managesKubeProxy && proxy.canBeChanged
  return isOurs ? stepOf('ProxyFirst', [{ kind: 'proxy', runs: true }]) : stepOf('Blocked')
}

function beforeDefault({ observed, standings }: Situation): Step {
  const unserved = standings.filter(({ node, stand }) => stand !== 'skipped' && !isServedBy(node, observed))
  if (unserved.length > 0)
    return stepOf(
      'ProxyFirst',
      [],
      unserved.map(({ node }) => node.name),
    )
  const loose = observed.nodes.map(({ name }) => name).filter((name) => observed.overrides.get(name)?.mode === undefined)
  if (loose.length === 0) return stepOf('Default', [{ kind: 'default', mode: 'Standard' }])
  const hold = loose.map((node): SwitchWrite => ({ kind: 'override', node, mode: 'BPF', mark: undefined }))
  return stepOf('Hold', hold, loose)
}

/** A kube-proxy serves this node: it has a ready pod of it, where there are pods, and the agent sees it. */
export function isServedBy({ name, status }: NodeFound, { proxy }: Observed): boolean {
  const isRunning = proxy.hasPods ? proxy.pods.get(name) === true : proxy.pods.get(name) !== false
  return proxy.isSettled && isRunning && status?.kubeProxy === 'Present'
}
