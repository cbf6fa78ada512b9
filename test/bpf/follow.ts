// SPDX-License-Identifier: Apache-2.0
/** Finds what old and new verifiers cannot follow in a function's instructions, on all its ways. Layer: test.
 *
 * Before 5.10 the verifier takes the result of a negation, a remainder or a swap of bytes for any number, until a
 * mask or a comparison bounds it. Since 7.2 it loses the lower bound of a value that may have gone below zero when
 * that is asked for before the upper one. */
import type { Code, Instruction } from './code.ts'

export interface Finding {
  readonly at: number
  readonly what: 'an address made with a number that nothing bounds' | 'a lower bound asked for before the upper one'
}

interface Value {
  /** of the instruction that made it: copies have the same */
  readonly id: number
  /** any number, to old verifiers */
  readonly vague: boolean
  /** not negative, and far from wrapping */
  readonly small: boolean
  /** may have gone below zero */
  readonly wraps: boolean
  /** its lower bound was asked for */
  readonly low: boolean
}

/** By place: "r3", or "-16" on the stack. */
type State = ReadonlyMap<string, Value>

const UNKNOWN = -1
const plain = (id: number, of: Partial<Value> = {}): Value => ({ id, vague: false, small: false, wraps: false, low: false, ...of })

const CLASS = { LD: 0, LDX: 1, ST: 2, STX: 3, ALU: 4, JMP: 5, JMP32: 6, ALU64: 7 }
const ALU = { ADD: 0x0, SUB: 0x1, OR: 0x4, AND: 0x5, LSH: 0x6, RSH: 0x7, NEG: 0x8, MOD: 0x9, XOR: 0xa, MOV: 0xb, DIV: 0x3, END: 0xd }
const VAGUE: ReadonlySet<number> = new Set([ALU.XOR, ALU.NEG, ALU.MOD, ALU.DIV, ALU.END])
const JMP = { JA: 0x0, JEQ: 0x1, JGT: 0x2, JGE: 0x3, CALL: 0x8, EXIT: 0x9, JLT: 0xa, JLE: 0xb }
const BY_REGISTER = 8
const WORD = 0x18
const FRAME = 10
/** leaves so few bits that they are an index */
const INDEX_SHIFT = 48

export function findUnfollowed({ instructions }: Pick<Code, 'instructions'>): Finding[] {
  const states = new Map<number, State>([[0, new Map()]])
  const queue = [0]
  const found = new Map<number, Finding['what']>()
  for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
    const [one, state] = [instructions[at], states.get(at)]
    if (one === undefined || state === undefined) continue
    for (const next of step({ one, at, state, report: (what) => found.set(at, what) })) {
      const [before, joined] = [states.get(next.at), join(states.get(next.at), next.state)]
      if (before !== undefined && same(before, joined)) continue
      states.set(next.at, joined)
      queue.push(next.at)
    }
  }
  return [...found].map(([at, what]) => ({ at, what }))
}

interface Next {
  readonly at: number
  readonly state: State
}

type Report = (what: Finding['what']) => void

interface Visit {
  readonly one: Instruction
  readonly at: number
  /** before the instruction */
  readonly state: State
  readonly report: Report
}

function step(visit: Visit): Next[] {
  const { one, at, state, report } = visit
  const kind = one.opcode & 7
  const on = (changes: readonly (readonly [string, Value])[]): Next[] => [{ at: at + 1, state: new Map([...state, ...changes]) }]
  const base = (register: number): void => {
    if (state.get(`r${register}`)?.vague === true) report('an address made with a number that nothing bounds')
  }
  switch (kind) {
    case CLASS.LD: // 16 bytes long, or of the packet
      return one.opcode === WORD ? [{ at: at + 2, state: new Map([...state, [`r${one.dst}`, plain(at)]]) }] : on([['r0', plain(at)]])
    case CLASS.LDX:
      base(one.src)
      return on([[`r${one.dst}`, loaded(one, at, state)]])
    case CLASS.ST:
    case CLASS.STX: {
      base(one.dst)
      const value = kind === CLASS.STX ? state.get(`r${one.src}`) : undefined
      return one.dst === FRAME ? on([[`${one.offset}`, value ?? plain(at)]]) : on([])
    }
    case CLASS.ALU:
    case CLASS.ALU64:
      return on([[`r${one.dst}`, computed(one, at, state)]])
    default:
      return jumps(visit)
  }
}

function loaded({ opcode, src, offset }: Instruction, at: number, state: State): Value {
  const whole = (opcode & WORD) === WORD
  return whole ? ((src === FRAME ? state.get(`${offset}`) : undefined) ?? plain(at)) : plain(at, { small: true })
}

function computed({ opcode, dst, src, immediate }: Instruction, at: number, state: State): Value {
  const op = opcode >> 4
  const register = (opcode & BY_REGISTER) !== 0
  const a = state.get(`r${dst}`) ?? plain(UNKNOWN)
  const b = register ? (state.get(`r${src}`) ?? plain(UNKNOWN)) : plain(at, { small: immediate >= 0 })
  if (op === ALU.MOV) return register ? b : plain(at)
  if (VAGUE.has(op)) return plain(at, { vague: true })
  const vague = a.vague || b.vague
  switch (op) {
    case ALU.AND:
      return plain(at, b.vague || (!register && immediate < 0) ? { vague } : { small: true })
    case ALU.RSH:
      return plain(at, !register && immediate >= INDEX_SHIFT ? { small: true } : { vague, small: !vague })
    case ALU.ADD:
      return plain(at, { vague, small: a.small && b.small, wraps: a.small && !register && immediate < 0 })
    case ALU.SUB:
      return plain(at, { vague, wraps: a.small && (register ? b.small : immediate > 0) })
    default:
      return plain(at, { vague, small: a.small && b.small })
  }
}

function jumps({ one, at, state, report }: Visit): Next[] {
  const op = one.opcode >> 4
  const target = at + 1 + one.offset
  if (op === JMP.EXIT) return []
  if (op === JMP.JA) return [{ at: target, state }]
  if (op === JMP.CALL) {
    const kept = [...state].filter(([place]) => !/^r[0-5]$/.test(place))
    return [{ at: at + 1, state: new Map([...kept, ['r0', plain(at)]]) }]
  }
  const id = state.get(`r${one.dst}`)?.id ?? UNKNOWN
  const value = state.get(`r${one.dst}`)
  const above = op === JMP.JGT || op === JMP.JGE
  if (value === undefined || (!above && op !== JMP.JLT && op !== JMP.JLE && op !== JMP.JEQ))
    return [
      { at: target, state },
      { at: at + 1, state },
    ]
  if (op === JMP.JEQ)
    return [
      { at: target, state: learned(state, id, { vague: false, wraps: false }) },
      { at: at + 1, state },
    ]
  const upper = learned(state, id, { vague: false, wraps: false, low: false, small: true })
  const lower = learned(state, id, { low: value.wraps })
  if (value.low) report('a lower bound asked for before the upper one')
  return [
    { at: target, state: above ? lower : upper },
    { at: at + 1, state: above ? upper : lower },
  ]
}

/** Of a value and its copies. */
function learned(state: State, id: number, of: Partial<Value>): State {
  return new Map([...state].map(([place, value]) => [place, id !== UNKNOWN && value.id === id ? { ...value, ...of } : value]))
}

/** What is so on either way; what only one of them knows is plain. */
function join(a: State | undefined, b: State): State {
  if (a === undefined) return b
  return new Map(
    [...new Set([...a.keys(), ...b.keys()])].map((place) => {
      const [one, other] = [a.get(place) ?? plain(UNKNOWN), b.get(place) ?? plain(UNKNOWN)]
      return [
        place,
        {
          id: one.id === other.id ? one.id : UNKNOWN,
          vague: one.vague || other.vague,
          small: one.small && other.small,
          wraps: one.wraps || other.wraps,
          low: one.low || other.low,
        },
      ]
    }),
  )
}

function same(a: State, b: State): boolean {
  return a.size === b.size && [...a].every(([place, value]) => JSON.stringify(value) === JSON.stringify(b.get(place)))
}
