// SPDX-License-Identifier: Apache-2.0
/** `bpf nat`: frontends, and the backends that packets to them may go to. Layer: cli (pure). */
import { protocolText } from '#lib/base/ip.ts'
import { compareText } from '#lib/base/order.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { Frontend, FrontendKey } from '#agent/maps/shapes.ts'
import { passes, type Filter } from '../filter.ts'
import type { Report } from '../report.ts'
import { entriesOf, type Tables } from '../map-tables.ts'
import { endRecord, endText, orDash, prefixText, type EndRecord } from '../text.ts'
import { flagNames } from '../enum-names.ts'
import { backendReader, type Backend, type BackendReader } from './backends.ts'
import { sortedFrontends } from './services.ts'
import { SET_BITS } from './routes.ts'

interface BackendRecord extends EndRecord, Pick<Backend, 'slot' | 'node' | 'live' | 'share'> {}

interface ChoiceRecord {
  /** a hash, the same on every node */
  readonly list: string
  readonly backends: readonly BackendRecord[]
}

export interface NatRecord {
  readonly frontend: EndRecord
  readonly proto: string
  readonly flags: readonly string[]
  /** seconds for which a client keeps its backend; 0: each flow for itself */
  readonly affinity: number
  /** null: open to all */
  readonly sourceRanges: readonly string[] | null
  /** for this node's pods and processes */
  readonly inside: ChoiceRecord
  /** for what comes from the network */
  readonly outside: ChoiceRecord
}

export const nat: Report<NatRecord> = {
  heading: ['FRONTEND', 'FOR', 'BACKEND', 'NODE', 'LIVE', 'MAGLEV', 'OPTIONS'],
  async *records({ tables, filter }) {
    const record = recorder({
      words: flagNames(tables.open(catalogue.np_frontends).btf, 'frontend_flag'),
      backends: await backendReader(tables),
      ranges: await rangesBySet(tables),
      filter,
    })
    // one at a time: many frontends may share long lists
    for (const [key, value] of await sortedFrontends(tables)) yield record(key, value)
  },
  lines: (record) => {
    const lists = record.inside.list === record.outside.list ? ['all' as const] : (['inside', 'outside'] as const)
    const rows = lists.flatMap((list) => choiceLines(list, list === 'all' ? record.outside : record[list], record))
    return rows.map((row, at) => (at === 0 ? [frontendText(record), ...row, optionsText(record)] : ['', ...row]))
  },
}

interface Sources {
  readonly words: (flags: number) => readonly string[]
  readonly backends: BackendReader
  readonly ranges: ReadonlyMap<string, readonly string[]>
  readonly filter: Filter
}

/** None for a frontend that is not asked for, itself or by one of its backends. */
function recorder({ words, backends, ranges, filter }: Sources): (key: FrontendKey, value: Frontend) => NatRecord[] {
  return ({ addr, port, proto }, { inside, outside, flags, affinity }) => {
    const named = words(flags)
    const out = backends(outside, named.includes('maglev'))
    const within = inside.list === outside.list ? out : backends(inside, false)
    if (!passes(filter, { proto, ends: [{ addr, port }, ...out, ...within] })) return []
    const frontend = endRecord({ addr, port })
    return [
      {
        frontend,
        proto: protocolText(proto),
        flags: named,
        affinity,
        sourceRanges: named.includes('ranges') ? (ranges.get(inside.list) ?? []) : null,
        inside: { list: inside.list, backends: within.map(backendRecord) },
        outside: { list: outside.list, backends: out.map(backendRecord) },
      },
    ]
  }
}

function backendRecord({ slot, node, live, share, ...end }: Backend): BackendRecord {
  return { ...endRecord(end), slot, node, live, share }
}

async function rangesBySet(tables: Tables): Promise<ReadonlyMap<string, readonly string[]>> {
  const entries = await entriesOf(tables.open(catalogue.np_ranges))
  const sets = new Map<string, string[]>()
  for (const [{ set, addr, prefix }] of entries.sort(([a], [b]) => compareText(a.addr, b.addr) || a.prefix - b.prefix))
    sets.set(set, [...(sets.get(set) ?? []), prefixText(addr, prefix - SET_BITS)])
  return sets
}

function frontendText({ frontend, proto }: NatRecord): string {
  return `${endText(frontend)}/${proto}`
}

/** All but the frontend and its options. */
function choiceLines(list: 'all' | 'inside' | 'outside', { backends }: ChoiceRecord, { flags }: NatRecord): string[][] {
  const rows = backends.map((backend) => [
    endText(backend),
    backend.node ?? '-',
    backend.live === null ? '-' : backend.live.join(' ') || 'kept',
    backend.share === null ? '-' : `${(100 * backend.share).toFixed(1)}%`,
  ])
  const isSilent = flags.includes(`${list === 'all' ? 'outside' : list}-local`)
  if (backends.every(({ slot }) => slot === null)) rows.unshift([isSilent ? 'none, silent' : 'none, refused', '-', '-', '-'])
  return rows.map((row, at) => [at === 0 ? list : '', ...row])
}

function optionsText({ flags, affinity, sourceRanges }: NatRecord): string {
  const words = flags.filter((flag) => flag !== 'ranges')
  return orDash(
    [...words, ...(affinity === 0 ? [] : [`affinity ${affinity}s`]), ...(sourceRanges ?? []).map((range) => `from ${range}`)].join(' '),
  )
}
