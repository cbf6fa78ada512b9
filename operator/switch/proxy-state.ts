// SPDX-License-Identifier: Apache-2.0
/** What becomes of kube-proxy, in words: the state of component `proxy`. Layer: operator (pure). */
import type { Cause, ComponentState } from '#lib/control/rollout.ts'
import { namesText } from '#lib/control/names-text.ts'
import type { ProxyCommands } from './proxy-command.ts'
import type { Situation, Step } from './situation.ts'
import { isServedBy } from './to-standard.ts'

export function proxyState(situation: Situation, step: Step, commands: ProxyCommands): ComponentState {
  return situation.asked.mode === 'BPF' ? besideBpf(situation, step, commands) : besideStandard(situation, step)
}

function besideBpf(situation: Situation, step: Step, { stop }: ProxyCommands): ComponentState {
  const { proxy } = situation.observed
  if (proxy.state !== 'running') return stopped(situation)
  if (!situation.asked.managesKubeProxy || proxy.action === 'keep') {
    const how = proxy.action === 'keep' ? 'this platform keeps it' : `to stop it once services are Available: ${stop}`
    return { available: { reason: 'BesideKubeProxy', message: `${proxy.what} runs beside us; ${how}` } }
  }
  if (proxy.manager !== undefined)
    return failing({ reason: 'ManagedByAnother', message: `${proxy.what} is not stopped: ${proxy.manager} manages it; stop it there` })
  if (!proxy.canBeChanged) return coming({ reason: 'StopByHand', message: `once services are Available: ${stop}` })
  if (step.writes.some(({ kind }) => kind === 'proxy')) return coming({ reason: 'Stopping', message: `${proxy.what} is stopped` })
  return coming({ reason: 'WaitsForServices', message: `${proxy.what} is stopped once we serve every node` })
}

/** Until its pods have ended, and agents have seen that. */
function stopped({ observed: { proxy, nodes }, standings }: Situation): ComponentState {
  const leftOut = new Set(standings.flatMap(({ node, stand }) => (stand === 'skipped' || stand === 'unready' ? [node.name] : [])))
  const running = nodes.filter(({ name, status }) => !leftOut.has(name) && (proxy.pods.has(name) || status?.kubeProxy === 'Present'))
  if (running.length > 0) {
    const message = `kube-proxy is still to go from ${namesText(running.map(({ name }) => name))}`
    return coming({ reason: 'Stopping', message })
  }
  const texts = {
    absent: 'there is no kube-proxy',
    stopped: `${proxy.what} is stopped`,
    'stopped-by-hand': `${proxy.what} has been stopped by hand`,
    running: '',
  }
  return { available: { reason: 'KubeProxyStopped', message: texts[proxy.state] } }
}

function besideStandard({ observed, standings }: Situation, step: Step): ComponentState {
  const { proxy } = observed
  if (step.phase === 'Blocked') return failing({ reason: 'KubeProxyMissing', message: 'it does not run: see component services' })
  if (proxy.isUnsaid) return coming({ reason: 'Starting', message: 'no agent has said yet whether kube-proxy runs' })
  if (proxy.state !== 'running') return coming({ reason: 'Starting', message: `${proxy.what} is started` })
  const waiting = standings.filter(({ node, stand }) => stand !== 'skipped' && stand !== 'unready' && !isServedBy(node, observed))
  if (waiting.length === 0) return { available: { reason: 'KubeProxyServes', message: `${proxy.what} runs` } }
  const names = namesText(waiting.map(({ node }) => node.name))
  return coming({ reason: 'Starting', message: `${proxy.what} is not ready, or not seen by the agent: ${names}` })
}

function coming(cause: Cause): ComponentState {
  return { unavailable: cause, progressing: cause }
}

function failing(cause: Cause): ComponentState {
  return { unavailable: cause, degraded: cause }
}
