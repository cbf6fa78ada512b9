// SPDX-License-Identifier: Apache-2.0
/** From kube-proxy to us: canary, waves, the default, and kube-proxy last. Layer: operator (pure). */
import { askedMode, defaultMode } from './observed.ts'
import { follow, isEverywhere, stepOf, type Situation, type Step, type SwitchWrite } from './situation.ts'

export function toBpf(situation: Situation): Step {
  const { observed, asked } = situation
  if (defaultMode(observed) === 'BPF') return afterDefault(situation)
  // another client has changed the default, and no one serves: there is nothing to lose
  if (isStopped(situation)) return stepOf('Default', [{ kind: 'default', mode: 'BPF' }])
  if (!asked.isPreflightPassed && !hasBegun(situation)) return stepOf('Preflight')
  if (isEverywhere(situation)) return stepOf('Default', [{ kind: 'default', mode: 'BPF' }])
  return follow(situation, () => true)
}

/** Nodes without an override serve by it. */
function afterDefault(situation: Situation): Step {
  const step = follow(situation, () => true)
  if (step.phase !== 'Over') return step
  const rules = ruleWrites(situation)
  return { ...step, writes: [...step.writes, ...rules, ...(isEverywhere(situation) ? proxyWrites(situation) : [])] }
}

/** Where the platform keeps its kube-proxy, that would put back what agents take away. */
function ruleWrites({ observed }: Situation): readonly SwitchWrite[] {
  const isKept = observed.proxy.action === 'keep' && observed.proxy.state === 'running'
  return isKept && observed.default?.keepsProxyRules !== true ? [{ kind: 'default', mode: 'BPF' }] : []
}

/** No node is left that needs it. */
function proxyWrites({ observed, asked }: Situation): readonly SwitchWrite[] {
  const { proxy, nodes } = observed
  const isNeeded = nodes.some(({ name }) => askedMode(name, observed) === 'Standard')
  return asked.managesKubeProxy && !isNeeded && proxy.canBeChanged && proxy.state === 'running' ? [{ kind: 'proxy', runs: false }] : []
}

function isStopped({ observed: { proxy } }: Situation): boolean {
  return proxy.state === 'stopped' || proxy.state === 'stopped-by-hand'
}

/** A node has been asked for BPF, so the preflight has passed. */
function hasBegun({ observed }: Situation): boolean {
  return observed.nodes.some(({ name }) => {
    const found = observed.overrides.get(name)
    return found?.mode === 'BPF' && found.mark?.to === 'BPF'
  })
}
