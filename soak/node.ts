// SPDX-License-Identifier: Apache-2.0
/** One node of the lab, looked at from outside: its tables, what it has besides, what its agent holds. Layer: soak. */
import { readdirSync, readFileSync } from 'node:fs'
import { BpfMap } from '#native'
import type { Configuration } from '#agent/compile/desired.ts'
import { readDesired } from '#agent/commands/read-desired.ts'
import { probeFeatures } from '#agent/dataplane/programs/kernel-features.ts'
import { DEFAULT_PIN_DIR } from '#agent/maps/catalogue.ts'
import type { Origin } from '#agent/run/sources.ts'
import type { Interface, Interfaces } from '#agent/interfaces/table.ts'
import { wholeCidr } from '#agent/compile/prefix-sets.ts'
import { parseAddr, parseCidr, type Cidr } from '#lib/base/ip.ts'
import { by, compareNumbers } from '#lib/base/order.ts'
import { rejectedText } from '#lib/base/result.ts'
import { snapshot } from '../demo/snapshot.ts'
import { mustRun } from '../lab/processes/command.ts'
import { LabError } from '../lab/errors.ts'
import type { Lab } from '../lab/lab.ts'
import { requireHolder } from '../lab/processes/place-holders.ts'
import { at, listAt, numberAt, textAt } from '../lab/raw.ts'
import { otherSettings } from './settings.ts'
import { differences, readContents, rowText, wantedContents, type TableContents } from './table-contents.ts'

/** Of a running agent. */
export interface Holdings {
  readonly descriptors: number
  readonly residentMb: number
}

export interface WantedNode {
  readonly contents: TableContents
  readonly configuration: Configuration
}

export class SoakedNode {
  readonly name: string
  readonly #lab: Lab
  readonly #origin: Origin
  readonly #features = probeFeatures()

  constructor(lab: Lab, name: string, origin: Origin) {
    this.name = name
    this.#lab = lab
    this.#origin = origin
  }

  /** What there should be by the objects and devices there are now. Throws LabError when an object is not taken as
   * it stands. */
  async wanted(): Promise<WantedNode> {
    const { desired, problems, missing } = await readDesired({ node: this.name, origin: this.#origin })
    const [problem] = problems
    if (problem !== undefined) throw new LabError(`objects of node ${this.name}`, rejectedText(problem.rejected))
    if (desired?.node === undefined) throw new LabError(`objects of node ${this.name}`, missing ?? '')
    return { contents: wantedContents(desired, await this.#interfaces(), this.#pins), configuration: desired.node }
  }

  /** A line for each row that is not so, and for each setting with which some program was loaded; empty: all are. */
  async differences({ contents, configuration }: WantedNode): Promise<string[]> {
    const pins = this.#pins
    const rows = differences(contents, await readContents(pins), (table) => rowText(pins, table))
    if (rows.length > 0) return rows
    const maps = (await this.#programs()).flatMap((program) => listAt(program, 'map_ids'))
    return otherSettings(new Set(maps.filter((id) => typeof id === 'number')), configuration, this.#features)
  }

  /** All that an agent may leave on a node, line by line: pins, programs, devices, addresses, routes, filters. The
   * generation is left out of the names of pins, the program's id out of filters. */
  async belongings(): Promise<readonly string[]> {
    const lines = (await snapshot(this.#lab, this.name)).split('\n').filter((line) => line !== '')
    const named = lines.map((line) =>
      line.replace(/(?<=\/programs\/)[0-9a-f]{16}(-\d+)?/, 'GENERATION').replace(/:\[\d+\]( direct-action .*) id \d+/, '$1'),
    )
    const programs = (await this.#programs()).map((program) => `program ${textAt(program, 'name') ?? '?'}`)
    return [...named, ...programs].sort()
  }

  /** Throws LabError when it has no agent. */
  holdings(): Holdings {
    const pid = this.#lab.agents.pid(this.name)
    if (pid === undefined) throw new LabError(`agent of node ${this.name}`, 'does not run')
    const kilobytes = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1])
    return { descriptors: readdirSync(`/proc/${pid}/fd`).length, residentMb: Math.round(kilobytes / 1000) }
  }

  /** Of the agents' log, from the given place on, the lines of these levels and events. */
  said(filter: { readonly from?: number; readonly levels?: readonly string[]; readonly events?: readonly string[] }): unknown[] {
    const lines = this.#lab
      .log(this.name)
      .slice(filter.from ?? 0)
      .split('\n')
    return lines
      .filter((line) => line.startsWith('{'))
      .map((line): unknown => JSON.parse(line))
      .filter(
        (line) =>
          filter.levels?.includes(textAt(line, 'level') ?? '') === true || filter.events?.includes(textAt(line, 'event') ?? '') === true,
      )
  }

  /** Where the log ends now. */
  get logEnd(): number {
    return this.#lab.log(this.name).length
  }

  get #pins(): string {
    return `/proc/${requireHolder(this.#lab.name, this.name)}/root${DEFAULT_PIN_DIR}`
  }

  /** All programs of the machine that use this node's counters, pinned or not. */
  async #programs(): Promise<unknown[]> {
    const counters = BpfMap.openPin(`${this.#pins}/maps/np_counters`)
    const { id } = counters.info()
    counters.close()
    const programs: unknown = JSON.parse(await mustRun(['bpftool', 'prog', 'show', '-j']))
    return listAt({ programs }, 'programs').filter((program) => listAt(program, 'map_ids').includes(id))
  }

  async #interfaces(): Promise<Interfaces> {
    const shown = await this.#listed(['-d', 'addr', 'show'])
    const all = shown.map(interfaceOf).sort(by((one) => one.index, compareNumbers))
    const routes = await Promise.all(
      ['-4', '-6'].map((family) => this.#listed([family, 'route', 'show', 'table', 'local', 'type', 'local'])),
    )
    const local = routes.flat().map((route) => prefixOf(textAt(route, 'dst') ?? ''))
    return { all: () => all, byName: (name) => all.find((one) => one.name === name), local: () => local }
  }

  async #listed(words: readonly string[]): Promise<readonly unknown[]> {
    const shown: unknown = JSON.parse(await this.#lab.mustRun(`node/${this.name}`, ['ip', '-j', ...words]))
    return listAt({ shown }, 'shown')
  }
}

/** "10.0.0.0/24", or an address alone */
function prefixOf(text: string): Cidr {
  return text.includes('/') ? parseCidr(text) : wholeCidr(parseAddr(text))
}

/** 0 global, 253 link, 254 host: as netlink has them. */
const SCOPES: Readonly<Record<string, number>> = { global: 0, link: 253, host: 254 }

function interfaceOf(shown: unknown): Interface {
  const flags = listAt(shown, 'flags')
  return {
    index: numberAt(shown, 'ifindex') ?? 0,
    name: textAt(shown, 'ifname') ?? '',
    mtu: numberAt(shown, 'mtu') ?? 0,
    mac: textAt(shown, 'address') ?? '',
    up: flags.includes('UP'),
    running: flags.includes('LOWER_UP'),
    loopback: flags.includes('LOOPBACK'),
    kind: textAt(at(shown, 'linkinfo'), 'info_kind'),
    master: 0,
    addresses: listAt(shown, 'addr_info').map((one) => ({
      addr: parseAddr(textAt(one, 'local') ?? ''),
      bits: numberAt(one, 'prefixlen') ?? 0,
      scope: SCOPES[textAt(one, 'scope') ?? ''] ?? 0,
    })),
  }
}
