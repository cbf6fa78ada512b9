// SPDX-License-Identifier: Apache-2.0
/** What is looked at when the changes are over: losses, logs, leaks, and what a fresh agent finds to do.
 * Layer: soak. */
import { isObject } from '#lib/base/object.ts'
import { INITIAL_HEAP_MB } from '#lib/base/os/package.ts'
import { waitFor } from '../lab/wait.ts'
import type { Load, LoadResult } from '../lab/traffic/load.ts'
import type { Leftover } from '../lab/network/down.ts'
import { at } from '../lab/raw.ts'
import { lossesIn, refusalsIn, slowestText, type Loss, type Way } from './flows.ts'
import type { Holdings, SoakedNode } from './node.ts'

export interface Check {
  readonly name: string
  /** a line each; none: it holds */
  readonly faults: readonly string[]
}

/** A lab that is soaked, whatever its agents read. */
export interface Soaked {
  readonly nodes: readonly SoakedNode[]
  /** Waits until everything is as it should be by now. Throws SoakError with what is not. */
  settle(): Promise<void>
  /** Kills all agents and waits for new ones. Resolves with how many blocks of addresses their nodes gave back
   * meanwhile. */
  restartAll(): Promise<number>
  /** What is on a node, but for what comes and goes by itself. */
  belongings(node: SoakedNode): Promise<readonly string[]>
  down(): Promise<readonly Leftover[]>
}

export interface Traffic {
  /** of streams, in their order */
  readonly ways: readonly Way[]
  readonly load: Load
  /** which step was the last before a time, in ms since 1970 */
  readonly stepAt: (time: number) => string
}

export function trafficChecks(result: LoadResult, { ways, load, stepAt }: Traffic): Check[] {
  const dated = ({ text, at: time }: Loss): string => (time === undefined ? text : `${text}; first in ${stepAt(time)}`)
  const messages = result.streams.reduce((sum, stream) => sum + stream.sent, 0)
  const connections = result.requests.reduce((sum, { ok }) => sum + ok, 0)
  const drops = `${slowestText(result.streams, ways)}; sockets dropped ${result.socketDrops}, processors ${result.softnetDrops}`
  return [
    {
      name: `${result.streams.length} flows, ${messages} messages: none lost, none silent for longer than a second (${drops})`,
      faults: lossesIn(result.streams, ways).map(dated),
    },
    { name: `${connections} new connections: all answered`, faults: refusalsIn(result.requests, load).map(dated) },
  ]
}

/** Lines that no agent should have had reason to write: errors, and damage by strangers where there are none.
 * `isOurs`: what was done to the agent. */
export function logCheck(nodes: readonly SoakedNode[], isOurs: (line: unknown) => boolean = () => false): Check {
  const faults = nodes.flatMap((node) => {
    const lines = node.said({ levels: ['error', 'fatal'], events: ['drift.found'] }).filter((line) => !isOurs(line))
    return lines.map((line) => `${node.name}: ${JSON.stringify(line)}`)
  })
  return { name: 'no agent reports an error or a difference that it did not make', faults }
}

/** What an agent may hold more than a fresh one: connections of clients, garbage that is not yet collected. In the
 * short form it never is. */
const SLACK: Holdings = { descriptors: 8, residentMb: INITIAL_HEAP_MB }

/** The least it held in the last half of the time counts: garbage comes and goes, what leaks stays. */
export function holdingsCheck(survivor: string, samples: readonly Holdings[], fresh: Holdings): Check {
  const least = (key: keyof Holdings): number => Math.min(...samples.slice(Math.floor(samples.length / 2)).map((sample) => sample[key]))
  const old: Holdings = { descriptors: least('descriptors'), residentMb: least('residentMb') }
  const faults = (['descriptors', 'residentMb'] as const)
    .filter((key) => old[key] > fresh[key] + SLACK[key])
    .map((key) => `${key}: ${old[key]}, of a fresh agent ${fresh[key]}`)
  const text = ({ descriptors, residentMb }: Holdings): string => `${descriptors} descriptors and ${residentMb} MB`
  return { name: `the agent of node ${survivor}, never killed, holds no more than a fresh one: ${text(old)}, ${text(fresh)}`, faults }
}

/** No node needs a route to a block that another node gave back. */
const WAYS_GONE = ['routes.remove', 'host-routes.remove']

/** Kills all agents, and sees that those after them change nothing. */
export async function restartCheck(soak: Soaked): Promise<Check> {
  const ends = new Map(soak.nodes.map((node) => [node, node.logEnd]))
  const gone = await soak.restartAll()
  await soak.settle()
  const faults = soak.nodes.flatMap((node) => {
    const [said] = node.said({ from: ends.get(node) ?? 0, events: ['dataplane.adopted'] })
    const written = at(said, 'written')
    const isRight = ([part, count]: readonly [string, unknown]): boolean => WAYS_GONE.includes(part) && Number(count) <= gone
    const right = isObject(written) && Object.entries(written).every(isRight) && at(said, 'adopted.programs') === true
    return right ? [] : [`${node.name}: ${JSON.stringify(said)}`]
  })
  return { name: 'fresh agents find everything in place and write 0 rows', faults }
}

/** What is on each node besides the tables is what was there before the first change. */
export async function leakCheck(soak: Soaked, before: ReadonlyMap<string, readonly string[]>): Promise<Check> {
  let faults: string[] = []
  const same = async (): Promise<true | undefined> => {
    const found = await Promise.all(
      soak.nodes.map(async (node) => changes(node.name, before.get(node.name) ?? [], await soak.belongings(node))),
    )
    faults = found.flat()
    return faults.length === 0 ? true : undefined
  }
  await waitFor(same, { timeoutMs: 10_000, everyMs: 500 })
  return { name: 'no program, pin, device, address, route, filter or sysctl more or less than at the beginning', faults }
}

/** "a: + program from_host". Lines that are there twice count twice. */
export function changes(node: string, before: readonly string[], after: readonly string[]): string[] {
  const left = [...after]
  const gone = before.filter((line) => {
    const found = left.indexOf(line)
    if (found >= 0) left.splice(found, 1)
    return found < 0
  })
  return [...gone.map((line) => `${node}: - ${line}`), ...left.map((line) => `${node}: + ${line}`)]
}

/** What `down` could not take away. */
export async function downCheck(soak: Soaked): Promise<Check> {
  const left = await soak.down()
  return { name: 'the lab leaves nothing', faults: left.map((one) => `${one.kind} ${one.what}: ${one.why}`) }
}
