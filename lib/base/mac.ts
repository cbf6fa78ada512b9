// SPDX-License-Identifier: Apache-2.0
/** Ethernet addresses as text: "02:00:5e:00:53:01". Layer: lib/base. */

/** Of what has none. */
export const NO_MAC = '00:00:00:00:00:00'

export const MAC = /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/

export function isMac(text: string): boolean {
  return MAC.test(text)
}
