// SPDX-License-Identifier: Apache-2.0
/** Agents killed at any moment, also while they start, again and again. Layer: lab. */
import { systemClock } from '#lib/base/clock.ts'
import type { Lab } from '../lab.ts'

/** ms between one kill and the next, at most */
const LONGEST_PAUSE = 1500

/** SIGKILL and a new start, `times` in all, one node after the other; resolves when each agent is ready again. */
export async function killAgents(lab: Lab, times: number): Promise<void> {
  const nodes = lab.topology.nodes.map((node) => node.name)
  const pauses = moments(7)
  for (let kill = 0; kill < times; kill++) {
    const node = nodes[kill % nodes.length] ?? ''
    await systemClock.sleep(pauses.next().value, new AbortController().signal)
    await lab.agents.stop(node, 'SIGKILL')
    await lab.agents.start(node)
  }
  await Promise.all(nodes.map((node) => lab.agents.waitReady(node)))
}

/** The same in every run: a failure can be looked at again. */
export function* moments(seed: number): Generator<number, never> {
  let state = seed
  for (;;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    yield (state / 0x1_0000_0000) * LONGEST_PAUSE
  }
}
