// SPDX-License-Identifier: Apache-2.0
/** The loaded programs as a judge of the table of failsafe ports: packets through hooks. Needs root, in a namespace
 * of its own. Layer: test. */
import { kernelFacts } from '../kernel/kernel-facts.ts'
import { packetRunner, setUpNamespace } from '../../testkit/packets/runner.ts'
import type { PacketRunner } from '../../testkit/packets/runner.ts'
import type { PacketCase, ProgramName, Step } from '../../testkit/packets/case.ts'
import { bytesOf } from '../support/policy-packet.ts'
import type { FailsafeJudge, Question, Sent } from './failsafes.ts'

const HOOKS: Readonly<Record<Sent['way'], ProgramName>> = {
  in: 'from_host',
  out: 'to_host',
  'from-pod': 'from_workload',
  'to-pod': 'to_workload',
}

export class FailsafePrograms implements FailsafeJudge {
  readonly name = 'programs'
  readonly #runner: PacketRunner

  private constructor(runner: PacketRunner) {
    this.#runner = runner
  }

  static async load(): Promise<FailsafePrograms> {
    setUpNamespace()
    const { features, missingHelpers } = kernelFacts()
    return new FailsafePrograms(await packetRunner(features, missingHelpers))
  }

  answer({ scope, policies, failsafes, packets }: Question): string {
    const given = { policies, failsafes }
    this.#differs({ given, steps: [] })
    const steps = packets.map((one) => this.#step(HOOKS[one.way], one))
    const [last] = packets.slice(-1)
    const early = scope === 'doNotTrack' && last?.way === 'in' ? [this.#step('untracked', last)] : []
    const isDropped = steps.some(isDrop)
    if (steps.slice(0, -1).some(isDrop)) return 'what goes before it is dropped'
    // XDP lets through what it cannot tell: that is asked about again
    if (early.some(isDrop) && !isDropped) return 'dropped by XDP alone'
    // once more, now that it is known what becomes of them: what is dropped is dropped by policy
    return this.#differs({ given, steps: [...steps, ...early] }) ?? (isDropped ? 'X' : '.')
  }

  close(): void {
    this.#runner.close()
  }

  #step(through: ProgramName, one: Sent): Step {
    const packet = bytesOf(one.packet, one.flags)
    const action = this.#runner.send(through, packet)
    if (action === 'drop') return { say: 'dropped by policy', through, packet, action, reason: 'DROP_POLICY' }
    if (action === 'pass' || action === 'redirect') return { say: 'passed', through, packet, action }
    throw new Error(`${through}: ${action}`)
  }

  #differs(of: Pick<PacketCase, 'given' | 'steps'>): string | undefined {
    return this.#runner.run({ name: 'failsafe ports', ...of })
  }
}

function isDrop({ action }: Step): boolean {
  return action === 'drop'
}
