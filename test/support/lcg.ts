// SPDX-License-Identifier: Apache-2.0
/** Numbers that look random and are the same in every run. Layer: test. */

/** Each call: 0 … below - 1. */
export function lcg(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return (state >>> 8) % below
  }
}
