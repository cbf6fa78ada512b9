// SPDX-License-Identifier: Apache-2.0
/** What the verifier says of its work on a program, and how much of it is too much. Layer: test. */

export interface VerifierWork {
  /** instructions walked, on all ways; the kernel gives up at a million */
  readonly instructions: number
  /** kept to be compared with */
  readonly states: number
}

/** Three quarters of what kernels allow, so that another one's verifier has room to walk more ways; states cost its
 * memory. The most instructions that were seen: 679,318 of the slow path on Enterprise Linux 8's 4.18.0-193. */
export const MOST_WORK: VerifierWork = { instructions: 750_000, states: 50_000 }

/** undefined before 5.2, and where another wording is used. */
export function parseWork(text: string): VerifierWork | undefined {
  const [, instructions, states] = /^processed (\d+) insns .*total_states (\d+)/m.exec(text) ?? []
  return instructions === undefined || states === undefined ? undefined : { instructions: Number(instructions), states: Number(states) }
}

export function isTooMuch({ instructions, states }: VerifierWork): boolean {
  return instructions > MOST_WORK.instructions || states > MOST_WORK.states
}
