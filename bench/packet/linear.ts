// SPDX-License-Identifier: Apache-2.0
/** The walk of one rule after the other: its object, rules and sets. Layer: bench. */
import type { BpfMap, BpfProgram } from '#native'
import { addrBytes, parseAddr } from '#lib/base/ip.ts'
import type { Loaded } from './objects.ts'
import { loadObject } from './objects.ts'

export class Linear {
  readonly program: BpfProgram
  readonly #loaded: Loaded
  readonly #rules: BpfMap
  readonly #members: BpfMap
  readonly #count: BpfMap

  private constructor(loaded: Loaded) {
    this.#loaded = loaded
    this.program = loaded.object.program('linear')
    this.#rules = loaded.object.map('bench_rules')
    this.#members = loaded.object.map('bench_members')
    this.#count = loaded.object.map('bench_count')
  }

  static async load(): Promise<Linear> {
    return new Linear(await loadObject('bench/linear.bpf.o'))
  }

  /** So many rules for this port, each of a set of its own. */
  fill(count: number, port: number): void {
    for (let at = 0; at < count; at++) {
      const rule = Buffer.alloc(8)
      rule.writeUInt32LE(at)
      rule.writeUInt16LE(port, 4)
      rule.writeUInt16LE(port, 6)
      this.#rules.update(word(at), rule)
    }
    this.#count.update(word(0), word(count))
  }

  /** The address is in the rule's set, until it is taken out. */
  member(rule: number, addr: string, isIn: boolean): void {
    const key = Buffer.concat([word(rule), addrBytes(parseAddr(addr))])
    if (isIn) this.#members.update(key, word(0))
    else this.#members.delete(key)
  }

  close(): void {
    for (const handle of [this.program, this.#rules, this.#members, this.#count]) handle.close()
    this.#loaded.object.close()
  }
}

function word(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
