// SPDX-License-Identifier: Apache-2.0
/** What a lab has made or was about to make, on disk before it is made: a killed `up` leaves nothing unknown.
 * Layer: lab. */
import { closeSync, existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { lockFile } from '#native'
import { systemClock } from '#lib/base/clock.ts'
import { errorCode } from '#lib/base/errors.ts'
import { LabError } from './errors.ts'
import { LABS, labPaths } from './paths.ts'
import { numberAt } from './raw.ts'
import type { Topology } from './network/topology.ts'

const VERSION = 1

export interface LabState {
  readonly version: number
  readonly options: SavedOptions
  /** the last one that was built or begun */
  readonly topology: Topology
  /** every network namespace it may have made */
  readonly netns: readonly string[]
  /** every address it may have given to an eth0, by network namespace */
  readonly addresses: Readonly<Record<string, readonly string[]>>
}

/** How it was brought up: what a later `up` or `start-agent` goes by, unless options say otherwise. */
export interface SavedOptions {
  /** directory of manifests */
  readonly resources: string
  /** these nodes of the manifests; undefined: all */
  readonly nodes: readonly string[] | undefined
  /** the client's addresses; empty: free ones */
  readonly client: readonly string[]
  readonly mtu: number
  readonly underlayMtu: number
  readonly plain: boolean
  /** an agent on every node */
  readonly agents: boolean
  /** an echo server in every pod that declares ports */
  readonly servers: boolean
  /** program and first arguments; --node and --resources are appended */
  readonly agentCommand: readonly string[]
  /** instead of --resources: where agents have their objects from, and further flags */
  readonly agentFlags: readonly string[] | undefined
}

/** undefined when there is no such lab; throws LabError when the file is not one of ours. */
export function readState(lab: string): LabState | undefined {
  const path = labPaths(lab).state
  if (!existsSync(path)) return undefined
  const parsed: unknown = JSON.parse(readFileSync(path, 'utf8'))
  if (!isState(parsed)) throw new LabError(`lab ${lab}`, `${path} is of another version`)
  return parsed
}

/** As {@link readState}; throws LabError when there is no such lab. */
export function requireState(lab: string): LabState {
  const state = readState(lab)
  if (state === undefined) throw new LabError(`lab ${lab}`, 'there is none of this name')
  return state
}

/** Whole or not at all. */
export function writeState(lab: string, state: Omit<LabState, 'version'>): void {
  const paths = labPaths(lab)
  mkdirSync(paths.logs, { recursive: true })
  writeFileSync(`${paths.state}.new`, JSON.stringify({ version: VERSION, ...state }, undefined, 2))
  renameSync(`${paths.state}.new`, paths.state)
}

/** Takes the lab's directory away. */
export function removeState(lab: string): void {
  rmSync(labPaths(lab).dir, { recursive: true, force: true })
}

/** Runs alone among all that change this lab; the kernel gives the lock back when we die. Throws LabError after a
 * minute of waiting. */
export async function withLock<T>(lab: string, run: () => Promise<T>): Promise<T> {
  const end = systemClock.now() + 60_000
  for (;;) {
    const file = tryLock(lab)
    if (file !== undefined) {
      try {
        return await run()
      } finally {
        rmSync(labPaths(lab).lock, { force: true })
        closeSync(file)
        removeLast()
      }
    }
    if (systemClock.now() > end) throw new LabError(`lab ${lab}`, 'another netplane-lab has been at work on it for a minute')
    await systemClock.sleep(50, new AbortController().signal)
  }
}

/** undefined: another process has it. */
function tryLock(lab: string): number | undefined {
  try {
    mkdirSync(LABS, { recursive: true, mode: 0o755 })
    return lockFile(labPaths(lab).lock)
  } catch (thrown) {
    // the last lab has just taken the folder away
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  }
}

/** The common directory, when no lab is left. It stays where it is a mount. */
function removeLast(): void {
  try {
    rmdirSync(LABS)
  } catch (thrown) {
    if (!['ENOTEMPTY', 'ENOENT', 'EBUSY'].includes(errorCode(thrown) ?? '')) throw thrown
  }
}

function isState(value: unknown): value is LabState {
  return numberAt(value, 'version') === VERSION
}
