// SPDX-License-Identifier: Apache-2.0
/** One node's policy in loaded programs, and beside it in tables that say by which rule. Layer: test. */
import type { PolicyStep } from '#agent/compile/policy/tables.ts'
import { judgeByTables } from '#agent/policy/judge.ts'
import { PolicyTables } from '#agent/policy/table-rows.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { testCfg } from '../../testkit/packets/runner.ts'
import { PolicyPrograms } from '../support/policy-programs.ts'
import type { Answer } from '../support/policy-programs.ts'

/** Nothing that depends on the machine: only policy may say no. With jiffies come all rules and staged ones. */
const PLAIN = { redirectPeer: false, redirectNeigh: false, coarseClock: false, jiffies: true, netnsCookies: false }

export class KernelNode {
  readonly #tables = new PolicyTables()
  readonly #programs: PolicyPrograms

  private constructor(programs: PolicyPrograms) {
    this.#programs = programs
  }

  static async load(): Promise<KernelNode> {
    return new KernelNode(await PolicyPrograms.load({ ...testCfg(PLAIN), source_check: 0, overlay: 0, stray_service: 0, dsr: 0 }))
  }

  take(steps: readonly PolicyStep[]): void {
    this.#tables.apply(steps)
    this.#programs.take(steps)
  }

  /** By the rules of its source, a pod of this node. */
  egress(packet: Packet): boolean {
    const answer = this.#programs.ask({ packet, through: 'from_workload', local: [packet.src] })
    this.#checkRules(packet, answer, { egress: true, ingress: false })
    return answer.action === 'allow'
  }

  /** By the rules of its destination. */
  ingress(packet: Packet): boolean {
    const answer = this.#programs.ask({ packet, through: 'from_host', local: [packet.dst] })
    this.#checkRules(packet, answer, { egress: false, ingress: true })
    return answer.action === 'allow'
  }

  /** Between two pods of this node: the destination's rules are asked when the source's let it go. */
  both(packet: Packet): boolean {
    const answer = this.#programs.ask({ packet, through: 'from_workload', local: [packet.src, packet.dst] })
    const leaves = judgeByTables(this.#tables, packet, { direction: 'egress' }).action === 'allow'
    this.#checkRules(packet, answer, { egress: true, ingress: leaves })
    return answer.action === 'allow'
  }

  async clear(): Promise<void> {
    this.#tables.rows.clear()
    await this.#programs.clear()
  }

  close(): void {
    this.#programs.close()
  }

  /** Throws when something has stayed behind that nothing refers to. */
  async mustBeEmpty(): Promise<void> {
    const rows = await this.#programs.rows()
    if (rows > 0) throw new Error(`${rows} rows are left of nothing`)
  }

  #checkRules(packet: Packet, answer: Answer, asked: { readonly egress: boolean; readonly ingress: boolean }): void {
    for (const direction of ['egress', 'ingress'] as const)
      for (const staged of [false, true]) {
        const want = asked[direction] ? (judgeByTables(this.#tables, packet, { direction, staged }).rule ?? 0) : 0
        const got = answer[staged ? (`staged${direction === 'egress' ? 'Egress' : 'Ingress'}` as const) : direction]
        if (got !== want) throw new Error(`${direction} of ${JSON.stringify(packet)} by rule ${got} instead of ${want}`)
      }
  }
}
