// SPDX-License-Identifier: Apache-2.0
/** How far UDP streams have come, by the kernel's count: a test waits for answers, not for time. Layer: test. */
import { expect } from 'vitest'
import type { Lab } from '../../lab/lab.ts'

/** Waits until sockets of the place have received so many more datagrams, at most 20 s. */
export async function receiveDatagrams(lab: Lab, place: string, count: number): Promise<void> {
  const before = await received(lab, place)
  const more = async (): Promise<number> => (await received(lab, place)) - before
  await expect.poll(more, { interval: 50, message: `datagrams for ${place}` }).toBeGreaterThanOrEqual(count)
}

/** Of both families, since the place is there. */
async function received(lab: Lab, place: string): Promise<number> {
  const text = await lab.mustRun(place, ['cat', '/proc/net/snmp', '/proc/net/snmp6'])
  const v4 = /^Udp: (\d+)/m.exec(text)?.[1]
  const v6 = /^Udp6InDatagrams\s+(\d+)/m.exec(text)?.[1]
  if (v4 === undefined || v6 === undefined) throw new Error(`no counts of datagrams in ${text}`)
  return Number(v4) + Number(v6)
}
