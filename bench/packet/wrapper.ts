// SPDX-License-Identifier: Apache-2.0
/** The wrapper program at work: a packet, a program behind it, how long one repeat takes. Layer: bench. */
import type { BpfMap, BpfProgram } from '#native'
import type { Codec } from '#agent/maps/codec.ts'
import type { ShapeType } from '#agent/maps/field-kinds.ts'
import { arrayOf, shape, u32, u64, u8 } from '#agent/maps/field-kinds.ts'
import { decodeBytes, encodeBytes } from '#agent/maps/byte-rows.ts'
import { InternalError } from '#lib/base/errors.ts'
import type { Loaded } from './objects.ts'
import { loadObject, valueCodec } from './objects.ts'

const wrap = shape('wrap', { mark: u32, cb: arrayOf(u32, 5), v6: u32, flows: u32, next: u32, length: u32, headers: arrayOf(u8, 80) })
const spent = shape('spent', { clock: u64, grow: u64, undo: u64, runs: u64 })
const ZERO = Buffer.alloc(4)
const ETHERTYPE_V6 = 0x86dd

export interface Subject {
  readonly packet: Uint8Array
  readonly mark?: number
  /** distinct flows by source address and port; 0: the packet's own */
  readonly flows?: number
  /** the first of them, counted from 0 */
  readonly next?: number
}

export interface Run {
  /** of one repeat, whole ns: the kernel gives no fractions */
  readonly ns: number
  /** signed TC action of the last repeat */
  readonly action: number
}

/** A wrapper program, and what it goes on to. */
interface Entrance {
  readonly program: BpfProgram
  readonly next: BpfMap
}

export class Wrapper {
  readonly #loaded: Loaded
  readonly #tc: Entrance
  readonly #xdp: Entrance
  readonly #template: BpfMap
  readonly #codec: Codec<ShapeType<typeof wrap>>

  private constructor(loaded: Loaded) {
    this.#loaded = loaded
    this.#tc = { program: loaded.object.program('wrap'), next: loaded.object.map('bench_next') }
    this.#xdp = { program: loaded.object.program('wrap_xdp'), next: loaded.object.map('bench_next_xdp') }
    this.#template = loaded.object.map('bench_wrap')
    this.#codec = valueCodec(loaded, 'bench_wrap', wrap)
  }

  /** `grow`: bytes that the pair programs make room for. */
  static async load(grow: number): Promise<Wrapper> {
    return new Wrapper(await loadObject('bench/wrap.bpf.o', { knobs: [{ name: 'grow_bytes', field: u32, value: grow }] }))
  }

  /** One of the object's own programs: "nothing" for baselines. */
  own(name: 'nothing' | 'nothing_xdp' | 'pair' | 'pair_timed'): BpfProgram {
    return this.#loaded.object.program(name)
  }

  run(program: BpfProgram, subject: Subject, repeat: number): Run {
    return this.#run(this.#tc, { program, subject, repeat })
  }

  /** The same with an XDP program; neither mark nor flows. */
  runXdp(program: BpfProgram, packet: Uint8Array, repeat: number): Run {
    return this.#run(this.#xdp, { program, subject: { packet }, repeat })
  }

  #run(by: Entrance, { program, subject, repeat }: { program: BpfProgram; subject: Subject; repeat: number }): Run {
    by.next.updateFd(ZERO, program)
    this.#template.update(ZERO, encodeBytes(this.#codec, templateOf(subject)))
    const { durationNs, retval } = by.program.testRun({ data: subject.packet, repeat })
    return { ns: durationNs, action: retval | 0 }
  }

  /** Which part of the pair's cost the undoing half has, 0 .. 1. */
  undoShare(subject: Subject, repeat: number): number {
    const map = this.#loaded.object.map('bench_spent')
    const codec = valueCodec(this.#loaded, 'bench_spent', spent)
    map.update(ZERO, Buffer.alloc(codec.size))
    const { action } = this.run(this.own('pair_timed'), subject, repeat)
    const bytes = map.lookup(ZERO)
    map.close()
    if (bytes === undefined || action !== 0) throw new InternalError('the pair could not be timed')
    const { clock, grow, undo } = decodeBytes(codec, bytes)
    return (undo - clock) / (grow + undo - 2 * clock)
  }

  close(): void {
    for (const { program, next } of [this.#tc, this.#xdp]) for (const handle of [program, next]) handle.close()
    this.#template.close()
    this.#loaded.object.close()
  }
}

function templateOf(subject: Subject): ShapeType<typeof wrap> {
  const { packet } = subject
  const v6 = ((packet[12] ?? 0) << 8) + (packet[13] ?? 0) === ETHERTYPE_V6
  const headers = Array.from({ length: 80 }, (_, at) => packet[at] ?? 0)
  return {
    mark: subject.mark ?? 0,
    cb: [0, 0, 0, 0, 0],
    v6: Number(v6),
    flows: subject.flows ?? 0,
    next: subject.next ?? 0,
    length: packet.length,
    headers,
  }
}
