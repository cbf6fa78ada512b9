// SPDX-License-Identifier: Apache-2.0
/** Network namespaces through iproute2: make, read, change, remove, and the processes in them. Layer: lab. */
import { existsSync, statfsSync, statSync } from 'node:fs'
import type { Run } from '../processes/command.ts'
import { at, listAt, numberAt, textAt } from '../raw.ts'
import type { NetnsState } from './setup.ts'

/** statfs type of a bound namespace: what tells it from an empty file that an interrupted `ip netns add` left. */
const NSFS = 0x6e736673

export function netnsPath(name: string): string {
  return `/run/netns/${name}`
}

export function netnsExists(name: string): boolean {
  const path = netnsPath(name)
  return existsSync(path) && statfsSync(path).type === NSFS
}

/** Identity of a namespace, as the links in /proc/PID/ns say it; undefined when there is none. */
export function netnsInode(name: string): number | undefined {
  return netnsExists(name) ? statSync(netnsPath(name)).ino : undefined
}

/** Makes those that are missing and returns their names. */
export async function addNetns(run: Run, names: readonly string[]): Promise<string[]> {
  const missing = names.filter((name) => !netnsExists(name))
  const broken = missing.filter((name) => existsSync(netnsPath(name)))
  await batch(run, [...broken.map((name) => `netns del ${name}`), ...missing.map((name) => `netns add ${name}`)])
  return missing
}

export async function removeNetns(run: Run, names: readonly string[]): Promise<void> {
  await batch(
    run,
    names.filter((name) => existsSync(netnsPath(name))).map((name) => `netns del ${name}`),
  )
}

/** Devices and their addresses. */
export async function readNetns(run: Run, name: string): Promise<NetnsState> {
  const parsed: unknown = JSON.parse(await run(['ip', '-j', '-n', name, 'addr', 'show']))
  const state = new Map<string, readonly string[]>()
  for (const link of listAt({ links: parsed }, 'links')) {
    const device = textAt(link, 'ifname')
    const addresses = listAt(link, 'addr_info').map((info) => `${textAt(info, 'local') ?? ''}/${numberAt(info, 'prefixlen') ?? ''}`)
    if (device !== undefined && at(link, 'ifindex') !== undefined) state.set(device, addresses)
  }
  return state
}

/** One `ip -batch`; throws CommandError at the first line that fails. */
export async function batch(run: Run, lines: readonly string[], netns?: string): Promise<void> {
  if (lines.length === 0) return
  const where = netns === undefined ? [] : ['-n', netns]
  await run(['ip', ...where, '-batch', '-'], { input: lines.map((line) => `${line}\n`).join('') })
}

/** Writes settings below /proc/sys as a process of that namespace. */
export async function writeSysctls(run: Run, netns: string, values: Readonly<Record<string, string>>): Promise<void> {
  const script = Object.entries(values).map(([path, value]) => `echo ${value} > /proc/sys/${path}`)
  await run(['nsenter', `--net=${netnsPath(netns)}`, 'sh', '-ec', script.join('\n')])
}
