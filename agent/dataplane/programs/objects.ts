// SPDX-License-Identifier: Apache-2.0
/** BPF object files: opened, checked against our shapes, their knobs set by name. Layer: agent/dataplane. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { MapSpec } from '#native'
import { BpfObject } from '#native'
import { LayoutError, ProgramError, errorText } from '#lib/base/errors.ts'
import type { Btf } from '../../maps/btf.ts'
import { findType, parseBtf, typeById } from '../../maps/btf.ts'
import type { MapName } from '../../maps/catalogue.ts'
import { bindMap, catalogue } from '../../maps/catalogue.ts'
import { bind } from '../../maps/codec.ts'
import { structLayout } from '../../maps/layout.ts'
import type { NodeCfg } from '../../maps/shapes.ts'
import { nodeCfg } from '../../maps/shapes.ts'
import { viewOf } from '../../maps/view.ts'
import type { Features } from './kernel-features.ts'

/** A file, by the name it has in pins: "tc". */
export interface ObjectFile {
  readonly name: string
  readonly path: string
}

/** Not loaded yet. Its BTF is taken now, for libbpf forgets some of it while loading. The caller that opened it closes
 * it. */
export interface OpenObject extends ObjectFile {
  readonly object: BpfObject
  readonly btf: Btf
  /** SHA-256 of the file */
  readonly digest: string
  /** maps that all objects share, by pin */
  readonly shared: ReadonlyMap<MapName, MapSpec>
  /** one set a generation: program arrays for tail calls, and where events go */
  readonly own: readonly string[]
}

/** Those of a generation. */
export const OBJECTS = ['tc', 'connect', 'xdp'] as const

/** Where programs tell of flows: a ring buffer, or an array of perf events. */
export const EVENTS = 'np_events'

export const PROG_ARRAY = 3
/** Of these there is one for kernels whose verifier follows every way to a function as well: those before 5.6, and
 * others without type information of their own. */
const WITH_FLOOR: ReadonlySet<string> = new Set(['tc', 'xdp'])

export function isFloor({ global_functions }: Pick<Features, 'global_functions'>): boolean {
  return global_functions !== 'yes'
}

export function objectFileName(name: string, features: Pick<Features, 'global_functions'>): string {
  return `${name}${isFloor(features) && WITH_FLOOR.has(name) ? '.floor' : ''}.bpf.o`
}

/** Maps that no other object shares: each load makes its own. */
const PRIVATE_MAPS: ReadonlySet<string> = new Set(['np_scratch', 'np_answer_rate', 'np_port_turns', 'np_cut', 'np_held'])

/** Throws ProgramError when the file is no BPF object of ours, LayoutError when a struct in it is not as our shapes
 * say. */
export function openObject(file: ObjectFile): OpenObject {
  const { object, digest } = attempt(file.name, 'open', () => ({
    object: BpfObject.open(file.path),
    digest: createHash('sha256').update(readFileSync(file.path)).digest('hex'),
  }))
  try {
    const btf = parseBtf(object.btf())
    const specs = object.maps()
    const shared = new Map<MapName, MapSpec>()
    for (const spec of specs) if (isShared(spec.name)) shared.set(spec.name, spec)
    for (const [name, spec] of shared) bindMap<unknown, unknown>(catalogue[name], btf, spec)
    const own = specs.filter((spec) => spec.type === PROG_ARRAY || spec.name === EVENTS).map((spec) => spec.name)
    const stranger = specs.find(
      (spec) => !isShared(spec.name) && !own.includes(spec.name) && !isInternal(spec.name) && !PRIVATE_MAPS.has(spec.name),
    )
    if (stranger !== undefined)
      throw new ProgramError({ program: file.name, op: 'open', reason: `map ${stranger.name} is not in the catalogue` })
    return { ...file, object, btf, digest, shared, own }
  } catch (thrown) {
    object.close()
    throw thrown
  }
}

/** Writes `cfg` into the read-only data, where BTF says it lies; returns all of that data. */
export function setKnobs(opened: OpenObject, cfg: NodeCfg): Buffer {
  const section = findType(opened.btf, 'section', '.rodata')
  const variable = section?.variables.find((candidate) => typeById(opened.btf, candidate.type).name === 'cfg')
  const codec = bind(nodeCfg, structLayout(opened.btf, 'node_cfg'))
  if (variable?.size !== codec.size) throw new LayoutError('node_cfg', `object ${opened.name} has no read-only cfg of ${codec.size} bytes`)
  return attempt(opened.name, 'set knobs', () => {
    const bytes = opened.object.rodata()
    codec.encode(cfg, viewOf(bytes), variable.offset)
    opened.object.setRodata(bytes)
    return bytes
  })
}

/** Wraps what the addon throws; the verifier's log goes along. */
export function programError(program: string, op: string, cause: unknown): ProgramError {
  const log =
    cause instanceof Error && 'verifierLog' in cause && typeof cause.verifierLog === 'string' && cause.verifierLog !== ''
      ? cause.verifierLog
      : undefined
  return new ProgramError({ program, op, reason: errorText(cause), cause, ...(log === undefined ? {} : { verifierLog: log }) })
}

function attempt<T>(program: string, op: string, action: () => T): T {
  try {
    return action()
  } catch (cause) {
    throw programError(program, op, cause)
  }
}

function isShared(name: string): name is MapName {
  return Object.hasOwn(catalogue, name)
}

/** libbpf's own for .rodata and the like: no C identifier has a dot. */
function isInternal(name: string): boolean {
  return name.includes('.')
}
