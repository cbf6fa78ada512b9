// SPDX-License-Identifier: Apache-2.0
/** `bpf affinity`: which client keeps to which backend. Layer: cli (pure). */
import { formatAddr } from '#lib/base/ip.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { Report } from '../report.ts'
import { durationText, endRecord, endText, type EndRecord } from '../text.ts'
import { listNames, namesText } from './services.ts'

export interface AffinityRecord {
  readonly client: string
  readonly backend: EndRecord
  /** since the client's last flow */
  readonly ageMs: number
  readonly list: string
  readonly frontends: readonly string[]
}

export const affinity: Report<AffinityRecord> = {
  heading: ['CLIENT', 'SERVICE', 'BACKEND', 'AGE'],
  async *records({ tables, nowMs }) {
    const names = await listNames(tables)
    for await (const part of tables.open(catalogue.np_affinity).parts()) {
      yield part.map(([{ client, list }, { addr, port, seen }]) => ({
        client: formatAddr(client),
        backend: endRecord({ addr, port }),
        ageMs: Math.max(0, Math.round(nowMs - seen)),
        list,
        frontends: names.get(list) ?? [],
      }))
    }
  },
  lines: ({ client, backend, ageMs, list, frontends }) => [[client, namesText(list, frontends), endText(backend), durationText(ageMs)]],
}
