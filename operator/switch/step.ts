// SPDX-License-Identifier: Apache-2.0
/** What is to be written next so that all nodes come to the mode that is asked for. Layer: operator (pure).
 *
 * It goes by what stands in the cluster alone. Writes of one step may be done in any order, and any of them may be
 * left out: the next step finds what there is then. */
import { defaultMode, UNSAID, type Observed } from './observed.ts'
import { stepOf, type AskedSwitch, type Situation, type Step } from './situation.ts'
import { standingOf } from './standing.ts'
import { toBpf } from './to-bpf.ts'
import { toStandard } from './to-standard.ts'

export function situationOf(observed: Observed, asked: AskedSwitch): Situation {
  const { mode: to, generation, retry, nodeTimeoutMs, askedAt } = asked
  const input = { observed, to, generation, retry, nodeTimeoutMs, askedAt, isStrict: isUnderWay(observed, asked) }
  return { observed, asked, standings: observed.nodes.map((node) => standingOf(node, input)) }
}

export function nextStep(situation: Situation): Step {
  // agents go by that already: from here on it is written
  if (situation.observed.default?.mode === undefined) return stepOf('Default', [{ kind: 'default', mode: UNSAID }])
  return situation.asked.mode === 'BPF' ? toBpf(situation) : toStandard(situation)
}

/** Something is still to be written, or to be taken away. */
function isUnderWay(observed: Observed, { mode, managesKubeProxy }: AskedSwitch): boolean {
  const isProxyLeft = mode === 'BPF' && managesKubeProxy && observed.proxy.state === 'running'
  return defaultMode(observed) !== mode || isProxyLeft || [...observed.overrides.values()].some(({ isOurs }) => isOurs)
}
