// SPDX-License-Identifier: Apache-2.0
/** How much slower this machine is than a busy one with two cores, for which the lab's times and rates are chosen.
 * Layer: lab. */
import { ConfigError } from '#lib/base/errors.ts'

/** 1 when it is not set; of an emulated machine, say, 20. */
const VARIABLE = 'NETPLANE_LAB_SLOWNESS'

/** As long as `ms` is there. */
export function longer(ms: number, slowness = readSlowness(process.env[VARIABLE])): number {
  return ms * slowness
}

/** As hard as so many a second are there. */
export function slower(rate: number, slowness = readSlowness(process.env[VARIABLE])): number {
  return rate / slowness
}

/** Throws ConfigError. */
export function readSlowness(text: string | undefined): number {
  const slowness = Number(text ?? '1')
  if (!(slowness >= 1 && slowness <= 1000)) throw new ConfigError(VARIABLE, `not a number from 1 to 1000: ${JSON.stringify(text)}`)
  return slowness
}
