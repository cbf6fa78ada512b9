// SPDX-License-Identifier: Apache-2.0
/** Pins that another process removed. Layer: agent/dataplane. */
import { existsSync, readdirSync } from 'node:fs'
import type { MapName } from '#agent/maps/catalogue.ts'
import type { SharedMaps } from './shared-maps.ts'
import type { Pins } from '../pins.ts'

/** Pins those maps again that have lost their pin: the agent's handle has kept them alive. Returns which. */
export function repinMaps(pins: Pins, shared: SharedMaps): MapName[] {
  const lost = [...shared.maps].filter(([name]) => !existsSync(pins.map(name)))
  if (lost.length > 0) pins.prepare()
  for (const [name, map] of lost) map.pin(pins.map(name))
  return lost.map(([name]) => name)
}

/** How many pins a generation has; 0 when it is gone. */
export function generationPins(pins: Pins, id: string): number {
  const folder = pins.generation(id)
  return existsSync(folder) ? readdirSync(folder).length : 0
}
