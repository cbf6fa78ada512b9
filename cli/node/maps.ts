// SPDX-License-Identifier: Apache-2.0
/** Parts of a bundle that come out of the pinned maps, programs and links: the same with and without an agent.
 * Layer: cli. */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { BpfLink, BpfMap, BpfProgram, monotonicNs } from '#native'
import { errorText } from '#lib/base/errors.ts'
import { catalogue, type MapDefinition, type MapName } from '#agent/maps/catalogue.ts'
import { flowKinds } from '#agent/maps/flow-states.ts'
import { affinity } from '../bpf/affinity.ts'
import { conntrack } from '../bpf/conntrack.ts'
import { counters } from '../bpf/counters.ts'
import { nat } from '../bpf/nat.ts'
import { routes } from '../bpf/routes.ts'
import { interfaceNames } from '../interfaces.ts'
import { PinnedTables } from '../pins.ts'
import { printerOf, type Printer } from '../report.ts'
import { NO_NAMES } from '../rules.ts'
import type { Tables } from '../map-tables.ts'
import type { Part } from '../bundle/collect.ts'
import { plain } from './rows.ts'

/** Tables with more are counted; of these so many rows are shown. */
const MOST_ROWS = 2000
const MOST_FLOWS = 2000
/** Shown by their reports, or counters. */
const APART: readonly MapName[] = ['np_ct', 'np_counters']

/** `tables` and what is pinned below `folder`. */
export function mapParts(folder: string): Part[] {
  const report = (name: string, about: string, print: Printer): Part => ({
    name,
    about,
    read: () => reading(folder, (tables) => limited(print({ ...QUESTION(), tables }, false))),
  })
  const names = Object.values(catalogue)
    .map(({ name }) => name)
    .filter((name) => !APART.some((one) => one === name))
  return [
    { name: 'maps/maps.json', about: 'pinned maps: kind, sizes, entries', read: () => mapList(join(folder, 'maps')) },
    report('maps/counters.txt', 'drops by reason and what else the programs counted, all CPUs together', printerOf(counters)),
    report('maps/frontends.txt', 'services as the programs have them', printerOf(nat)),
    report('maps/routes.txt', 'addresses and prefixes that the programs know', printerOf(routes)),
    report('maps/affinity.txt', 'clients that keep to a backend', printerOf(affinity)),
    { name: 'maps/flows.json', about: 'flows by protocol and state', read: () => reading(folder, flowCounts) },
    report('maps/flows.txt', `up to ${MOST_FLOWS} flows`, printerOf(conntrack)),
    ...Object.values(catalogue)
      .filter(({ name }) => names.includes(name))
      .map((definition): Part => ({
        name: `maps/rows/${definition.name}.json`,
        about: `up to ${MOST_ROWS} rows of ${definition.name}`,
        read: () => reading(folder, (tables) => rowsOf(tables, definition)),
      })),
    { name: 'programs/programs.json', about: 'pinned programs', read: () => programList(join(folder, 'programs')) },
    { name: 'programs/links.json', about: 'pinned links: where programs are attached', read: () => linkList(join(folder, 'links')) },
  ]
}

const NO_FILTER = { addr: undefined, port: undefined, proto: undefined }
const QUESTION = () => ({ interfaceName: interfaceNames(), nowMs: monotonicNs() / 1e6, names: NO_NAMES, filter: NO_FILTER, all: true })

async function reading(folder: string, read: (tables: Tables) => Promise<string>): Promise<string> {
  using tables = new PinnedTables(folder)
  return await read(tables)
}

/** Whole lines, as many as flows are wanted at most. */
async function limited(pieces: AsyncIterable<string>): Promise<string> {
  let text = ''
  let lines = 0
  for await (const piece of pieces) {
    text += piece
    lines += piece.split('\n').length
    if (lines > MOST_FLOWS) return `${text.split('\n').slice(0, MOST_FLOWS).join('\n')}\n…\n`
  }
  return text
}

async function flowCounts(tables: Tables): Promise<string> {
  const table = tables.open(catalogue.np_ct)
  const kindOf = flowKinds(table.btf)
  const counts: Record<string, number> = {}
  for await (const part of table.parts())
    for (const [key, value] of part) {
      const { proto, state } = kindOf(key.proto, value.state)
      counts[`${proto} ${state}`] = (counts[`${proto} ${state}`] ?? 0) + 1
    }
  return jsonText({ entries: Object.values(counts).reduce((a, b) => a + b, 0), counts })
}

async function rowsOf(tables: Tables, definition: MapDefinition<unknown, unknown>): Promise<string> {
  const rows: string[] = []
  let count = 0
  for await (const part of tables.open(definition).parts()) {
    for (const [key, value] of part.slice(0, Math.max(0, MOST_ROWS - rows.length)))
      rows.push(JSON.stringify({ key: plain(definition.key.kind, key), value: plain(definition.value.kind, value) }))
    count += part.length
  }
  return `{"entries": ${count}, "rows": [\n${rows.sort().join(',\n')}\n]}\n`
}

function mapList(folder: string): string {
  return jsonText(pinsIn(folder).map((name) => ({ pin: name, ...opened(() => infoOf(BpfMap.openPin(join(folder, name)))) })))
}

/** Each generation is a folder. */
function programList(folder: string): string {
  const generations = pinsIn(folder).map((generation) => ({
    generation,
    programs: pinsIn(join(folder, generation)).map((name) => ({
      pin: name,
      ...opened(() => infoOf(BpfProgram.openPin(join(folder, generation, name)))),
    })),
  }))
  return jsonText(generations)
}

function linkList(folder: string): string {
  const nameOf = interfaceNames()
  const links = pinsIn(folder).map((name) => {
    const info = opened(() => infoOf(BpfLink.openPin(join(folder, name))))
    return { pin: name, ...info, ...('ifindex' in info && info.ifindex > 0 ? { interface: nameOf(info.ifindex) } : {}) }
  })
  return jsonText(links)
}

function pinsIn(folder: string): string[] {
  if (!existsSync(folder)) throw new Error(`there is no ${folder}: no agent has run on this node, or it was cleaned up`)
  return readdirSync(folder).sort()
}

function infoOf<T>(handle: { info(): T; close(): void }): T {
  try {
    return handle.info()
  } finally {
    handle.close()
  }
}

function opened<T extends object>(open: () => T): T | { readonly unread: string } {
  try {
    return open()
  } catch (thrown) {
    return { unread: errorText(thrown) }
  }
}

export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}
