// SPDX-License-Identifier: Apache-2.0
/** What a runtime reads to find us: a list of our own, or another plugin's with us at its end. Layer: agent/cni. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeDurably, writeDurably } from '#lib/base/os/durable-file.ts'
import { ConfigError, errorCode, errorText } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import { PORTMAP } from '../portmap.ts'
import { CNI_VERSIONS } from '../request.ts'
import { SHIM } from './shim.ts'
import { filesIn } from '../files.ts'

/** Runtimes take the first by name. */
export const CONFLISTS = { own: '10-netplane.conflist', chained: '00-00-netplane.conflist' } as const

/** Which runtimes that read cniVersion alone do not know: those with a libcni before 1.2. */
const NEWEST = '1.1.0'

export interface OwnList {
  readonly socket: string
  /** of pods' devices; undefined: the agent finds it out */
  readonly mtu: number | undefined
  /** CNI versions that the plugin portmap speaks; undefined: it is not installed; 'none': hostPorts are not served */
  readonly portmap: readonly string[] | 'none' | undefined
}

/** Without portmap runtimes pass hostPorts to Netplane, which refuses them: no plugin would serve them. Where none are
 * to be served, runtimes pass them to no plugin. Newer runtimes take the newest of cniVersions that they know, without
 * asking the plugins, and call each plugin with it. Throws ConfigError when portmap has none of Netplane's versions. */
export function conflistText({ socket, mtu, portmap: found }: OwnList): string {
  const capabilities = { portMappings: true }
  const portmap = found === 'none' ? undefined : found
  const own = { type: SHIM, socket, ...(mtu === undefined ? {} : { mtu }), ...(found === undefined ? { capabilities } : {}) }
  const plugins = portmap === undefined ? [own] : [own, { type: PORTMAP, capabilities, snat: true }]
  const cniVersions = portmap === undefined ? CNI_VERSIONS : CNI_VERSIONS.filter((version) => portmap.includes(version))
  const cniVersion = cniVersions.findLast((version) => version !== NEWEST)
  if (cniVersion === undefined)
    throw new ConfigError(PORTMAP, `speaks ${portmap?.join(', ')}, of which no runtime before libcni 1.2 knows any`)
  return textOf({ cniVersion, cniVersions, name: 'netplane', plugins })
}

export interface Conflist {
  readonly kind: keyof typeof CONFLISTS
  /** undefined: there is to be none */
  readonly text: string | undefined
}

/** The first list of another in this folder that gives pods a network, with us at its end. Its name stays: addresses
 * and results are kept by it. No text: it has us already. Undefined: there is no such list. Throws ConfigError when it
 * is none that we can be in. */
export function chainedConflist(confDir: string, socket: string): Conflist | undefined {
  const names = namesOfOthers(confDir)
  const [first] = names
  if (first !== undefined && first < CONFLISTS.chained)
    throw new ConfigError(first, `comes before ${CONFLISTS.chained}: runtimes would pass over Netplane`)
  for (const name of names) {
    const list = readList(confDir, name)
    if (list.types.some((type) => type !== LOOPBACK)) return withUs(name, list, socket)
  }
  return undefined
}

/** The plugin of every pod's `lo`: runtimes have had lists of it alone. */
const LOOPBACK = 'loopback'

interface List {
  readonly fields: Readonly<Record<string, unknown>>
  readonly plugins: readonly unknown[]
  readonly types: readonly string[]
}

function readList(confDir: string, name: string): List {
  const raw = readJson(join(confDir, name))
  // a file with a single plugin is what was there before lists
  const fields = Array.isArray(raw['plugins']) ? raw : { cniVersion: raw['cniVersion'], name: raw['name'], plugins: [raw] }
  const plugins: readonly unknown[] = Array.isArray(fields['plugins']) ? fields['plugins'] : []
  const types = plugins.flatMap((plugin) => (isObject(plugin) && typeof plugin['type'] === 'string' ? plugin['type'] : []))
  if (types.length === 0 || types.length < plugins.length) throw new ConfigError(name, 'plugins: must be objects with a type')
  return { fields, plugins, types }
}

function withUs(name: string, { fields, plugins, types }: List, socket: string): Conflist {
  if (types.includes(SHIM)) return { kind: 'chained', text: undefined }
  const { cniVersion } = fields
  if (!isOurs(cniVersion)) {
    const what = cniVersion === undefined ? 'is missing, and must be' : `${JSON.stringify(cniVersion)} is not`
    throw new ConfigError(name, `cniVersion: ${what} one of ${CNI_VERSIONS.join(', ')}: no pod would start`)
  }
  // of those that newer runtimes may choose from, what we are not called with
  const offered: unknown = fields['cniVersions']
  const cniVersions = Array.isArray(offered) ? { cniVersions: offered.filter(isOurs) } : {}
  return { kind: 'chained', text: textOf({ ...fields, ...cniVersions, plugins: [...plugins, { type: SHIM, socket }] }) }
}

function isOurs(version: unknown): boolean {
  return CNI_VERSIONS.some((one) => one === version)
}

/** Throws ConfigError when runtimes take another list than our own. */
export function refuseOthersBefore(confDir: string): void {
  const [name] = namesOfOthers(confDir)
  if (name !== undefined && name < CONFLISTS.own)
    throw new ConfigError(
      join(confDir, name),
      `comes before ${CONFLISTS.own}: runtimes pass over Netplane (--cni-chained puts it at the end of that list)`,
    )
}

/** Takes away lists of versions before this one. Returns their names. */
export function removeOldLists(confDir: string): readonly string[] {
  const old = oldLists(confDir)
  for (const name of old) removeDurably(join(confDir, name))
  return old
}

/** They call a plugin that has lost its account, and may come before ours: "10-canal.conflist". */
export function oldLists(confDir: string): readonly string[] {
  return namesOfOthers(confDir).filter((name) => typesIn(confDir, name).includes(OLD_PLUGIN))
}

const OLD_PLUGIN = 'netplane'

/** None of what is no list. */
function typesIn(confDir: string, name: string): readonly string[] {
  try {
    return readList(confDir, name).types
  } catch (thrown) {
    if (thrown instanceof ConfigError) return []
    throw thrown
  }
}

/** In the order in which runtimes take them. */
export function namesOfOthers(confDir: string): readonly string[] {
  const ours: readonly string[] = Object.values(CONFLISTS)
  return filesIn(confDir)
    .filter((file) => /\.(conf|conflist|json)$/.test(file) && !ours.includes(file))
    .sort()
}

/** The only list that there is of us then. True when it was not so before. */
export function installConflist(confDir: string, { kind, text }: Conflist): boolean {
  const isThere = (name: string): boolean => textIn(join(confDir, name)) !== undefined
  const path = join(confDir, CONFLISTS[kind])
  const isNew = text !== undefined && textIn(path) !== text
  if (isNew) writeDurably(path, text, 0o644)
  const left = Object.values(CONFLISTS).filter((name) => isThere(name) && (name !== CONFLISTS[kind] || text === undefined))
  for (const name of left) removeDurably(join(confDir, name))
  return isNew
}

function textOf(list: object): string {
  return `${JSON.stringify(list, null, 2)}\n`
}

function readJson(path: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (!isObject(value)) throw new TypeError('is no JSON object')
    return value
  } catch (thrown) {
    throw new ConfigError(path, `cannot be read: ${errorText(thrown)}`, thrown)
  }
}

function textIn(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  }
}
