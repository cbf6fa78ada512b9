// SPDX-License-Identifier: Apache-2.0
/** `version`: of this program, of the cluster, and those that its nodes run. Layer: cli. */
import type { ApiClient } from '#lib/api/client.ts'
import { UnreachableError } from '#lib/api/errors.ts'
import { ConfigError, errorText } from '#lib/base/errors.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { table } from '#lib/base/table.ts'
import { linesText, type CommandResult } from '../command-result.ts'
import type { VersionOrder } from '../resources/order.ts'
import { connect } from './connect.ts'
import { clusterInformation, storedInformation, nodeCount, runningVersions, type RunningVersion } from '#lib/control/cluster-version.ts'
import { readSettings, type Setting, type Settings } from './settings.ts'

export interface Versions {
  readonly client: string
  /** null: the cluster does not say, or could not be asked */
  readonly cluster: string | null
  readonly type: string | null
  readonly datastoreReady: boolean | null
  /** null: could not be asked */
  readonly nodes: readonly RunningVersion[] | null
  /** all nodes of the cluster, also those without an agent; null: the account may not list them */
  readonly nodeCount: number | null
}

const NONE = { cluster: null, type: null, datastoreReady: null, nodes: null, nodeCount: null } as const

/** A cluster that cannot be reached is no error: this program's own version is known. One that refuses is. */
export async function versionCommand({ connection, client, settings: showSettings, json }: VersionOrder): Promise<CommandResult> {
  const own: Versions = { client: `v${packageVersion()}`, ...NONE }
  if (client) return json ? result(jsonText({ client: own.client })) : result(`Client Version:   ${own.client}\n`)
  const settings = readSettings({ flags: connection, env: process.env })
  const shown = showSettings ? settingRecords(settings) : undefined
  const show = (versions: Versions): string => {
    if (json) return jsonText({ ...versions, ...(shown && { settings: shown }) })
    return `${versionText(versions)}${shown === undefined ? '' : `\n${settingsTable(shown)}`}`
  }
  try {
    await using api = connect(settings)
    const { versions, failures } = await readVersions(api)
    return { text: show(versions), warnings: linesText(failures.map(errorText)), exitCode: failures.every(isAway) ? 0 : 1 }
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown
    // settings are shown above all where they are wrong; where nothing says how the cluster is reached there is none
    return { text: show(own), warnings: `${thrown.message}\n`, exitCode: settings.kubeconfig === undefined ? 0 : 1 }
  }
}

function isAway(thrown: unknown): boolean {
  return thrown instanceof UnreachableError
}

function result(text: string): CommandResult {
  return { text, warnings: '', exitCode: 0 }
}

/** As much as the cluster tells, and why the rest is missing. */
export async function readVersions(api: ApiClient): Promise<{ readonly versions: Versions; readonly failures: readonly unknown[] }> {
  const said = async () => (await clusterInformation(api)) ?? (await storedInformation(api))
  const [information, nodes, count] = await Promise.allSettled([said(), runningVersions(api), nodeCount(api)])
  const {
    netplaneVersion = null,
    clusterType = null,
    datastoreReady = null,
  } = (information.status === 'fulfilled' && information.value) || {}
  const versions = {
    client: `v${packageVersion()}`,
    cluster: netplaneVersion,
    type: clusterType,
    datastoreReady,
    nodes: nodes.status === 'fulfilled' ? nodes.value : null,
    nodeCount: count.status === 'fulfilled' ? count.value : null,
  }
  const failures = [information, nodes].flatMap((one): readonly unknown[] => (one.status === 'rejected' ? [one.reason] : []))
  // one server that does not answer has one reason
  return { versions, failures: failures.slice(0, failures.every(isAway) ? 1 : undefined) }
}

export function versionText({ client, cluster, type, datastoreReady, nodes, nodeCount: count }: Versions): string {
  const withAgent = (nodes ?? []).reduce((sum, one) => sum + one.nodes, 0)
  // pods of nodes that have just gone stay for a time
  const all = Math.max(withAgent, count ?? 0)
  const share = (some: number): string => (count === null ? `${some} nodes` : `${some} of ${all} nodes`)
  const lines = (nodes ?? []).map((one) => `${one.version} on ${share(one.nodes)}`)
  if (withAgent > 0 && withAgent < all) lines.push(`no agent on ${share(all - withAgent)}`)
  const [first = nodes === null ? 'unknown' : 'no agent has a pod', ...more] = lines
  return linesText([
    `Client Version:   ${client}`,
    `Cluster Version:  ${cluster ?? 'unknown'}`,
    `Cluster Type:     ${type ?? 'unknown'}`,
    `Nodes run:        ${first}`,
    ...more.map((line) => `                  ${line}`),
    ...(datastoreReady === false ? ['Datastore:        locked'] : []),
  ])
}

interface SettingRecord extends Setting {
  readonly setting: string
}

function settingRecords({ kubeconfig, context }: Settings): readonly SettingRecord[] {
  return [
    { setting: 'kubeconfig', ...(kubeconfig ?? { value: '-', source: 'none: the account of a pod' }) },
    { setting: 'context', ...(context ?? { value: '-', source: 'none: the current one' }) },
  ]
}

function settingsTable(records: readonly SettingRecord[]): string {
  return `${table([['SETTING', 'VALUE', 'SOURCE'], ...records.map(({ setting, value, source }) => [setting, value, source])])}\n`
}

function jsonText(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`
}
