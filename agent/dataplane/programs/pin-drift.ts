// SPDX-License-Identifier: Apache-2.0
/** Pins that another process removed. Layer: agent/dataplane. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Generation } from './generation.ts'
import type { SharedMaps } from './shared-maps.ts'
import { makePinFolder, type Pins } from '../pins.ts'

/** Pins what has lost its pin again: the agent's handles have kept it alive. Returns which: "map np_ct",
 * "program tc-np_tail". */
export function repin(pins: Pins, { shared, generation }: { readonly shared: SharedMaps; readonly generation: Generation }): string[] {
  const folder = pins.generation(generation.id)
  const maps = [...shared.maps].filter(([name]) => !existsSync(pins.map(name)))
  const programs = [...generation.pinned].filter(([name]) => !existsSync(join(folder, name)))
  if (maps.length + programs.length > 0) pins.prepare()
  for (const [name, map] of maps) map.pin(pins.map(name))
  if (programs.length > 0) makePinFolder(folder)
  for (const [name, handle] of programs) handle.pin(join(folder, name))
  return [...maps.map(([name]) => `map ${name}`), ...programs.map(([name]) => `program ${name}`)]
}
