// SPDX-License-Identifier: Apache-2.0
/** Parts of a bundle that the agent tells, or has left on the disk. Layer: cli. */
import { closeSync, existsSync, fstatSync, lstatSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { errorText } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import { agentPage } from '../agent.ts'
import type { Part } from '../bundle/collect.ts'
import { jsonText } from './maps.ts'
import { toolText } from './tools.ts'

export interface AgentPlaces {
  /** host and port of its health pages */
  readonly agent: string
  /** of the agent's flag --state-dir */
  readonly stateDir: string
  /** what outlives a reboot */
  readonly keepDir: string
  /** file with its log; undefined: the journal, or the log of its pod */
  readonly log: string | undefined
}

const LOG_LINES = '5000'
const LOG_BYTES = 4 << 20
const POD_LOGS = '/var/log/pods'
/** Where FelixConfiguration has metrics unless it says otherwise. */
const METRICS_PORT = 9091

export function agentParts({ agent, stateDir, keepDir, log }: AgentPlaces): Part[] {
  const page = (name: string, about: string, path: string): Part => ({
    name,
    about,
    read: async () => {
      const { body } = await agentPage(agent, path)
      return isJson(body) ? jsonText(JSON.parse(body)) : body
    },
  })
  return [
    page('agent/status.json', 'ready or not, and every condition with its reason', '/readiness'),
    page('agent/settings.json', 'every setting, its value, and who said so', '/config'),
    page('agent/rules.json', 'rules of policies by the numbers that flows have', '/policy/rules'),
    { name: 'agent/metrics.txt', about: 'metrics', read: () => metrics(agent) },
    { name: 'agent/files.txt', about: 'what the agent keeps on the disk', read: () => listing([stateDir, keepDir]) },
    {
      name: 'agent/last-good.json',
      about: 'last good versions of what cannot be read at present',
      read: () => readFileSync(join(keepDir, 'last-good.json'), 'utf8'),
    },
    { name: 'agent/sysctls.json', about: 'former values of sysctls', read: () => readFileSync(join(stateDir, 'sysctls.json'), 'utf8') },
    { name: 'log/agent.txt', about: 'the last lines of its log', read: () => logText(log) },
  ]
}

function isJson(text: string): boolean {
  return /^\s*[[{]/.test(text)
}

/** They have a port of their own, which the settings tell. */
async function metrics(agent: string): Promise<string> {
  const { body } = await agentPage(agent, '/config')
  const parsed: unknown = JSON.parse(body)
  const fields = isObject(parsed) && isObject(parsed['fields']) ? parsed['fields'] : {}
  const value = (name: string): unknown => {
    const field = fields[name]
    return isObject(field) ? field['value'] : undefined
  }
  const port = Number(value('prometheusMetricsPort') ?? METRICS_PORT)
  const host = agent.slice(0, agent.lastIndexOf(':'))
  try {
    return (await agentPage(`${host}:${port}`, '/metrics')).body
  } catch (thrown) {
    const off = value('prometheusMetricsEnabled') === true ? '' : ' (prometheusMetricsEnabled is not set)'
    throw new Error(`${errorText(thrown)}${off}`, { cause: thrown })
  }
}

/** Names and sizes alone: files of containers are named after pods, what is in them is theirs. */
function listing(folders: readonly string[]): string {
  const lines = [...new Set(folders)].flatMap((folder) => {
    const stat = statSync(folder, { throwIfNoEntry: false })
    return stat === undefined ? [`${folder}: is not there`] : below(folder, stat.dev)
  })
  return lines.map((line) => `${line}\n`).join('')
}

/** What is mounted there is another's: the node's whole cgroup tree, say. What goes meanwhile is left out. */
function below(folder: string, device: number): string[] {
  return readdirSync(folder)
    .sort()
    .flatMap((name) => {
      const path = join(folder, name)
      const stat = lstatSync(path, { throwIfNoEntry: false })
      if (stat === undefined) return []
      const line = `${path} ${stat.size} ${stat.mtime.toISOString()}`
      return stat.isDirectory() && stat.dev === device ? [line, ...below(path, device)] : [line]
    })
}

/** Of the file that was named, else of the pod's newest, else of the journal. */
async function logText(file: string | undefined): Promise<string> {
  const path = file ?? podLog()
  if (path !== undefined) return endOf(path)
  const tags = ['--identifier=netplane-agent', '--unit=netplane-agent']
  try {
    return await toolText('journalctl', '--no-pager', '--output=cat', `--lines=${LOG_LINES}`, ...tags)
  } catch (thrown) {
    throw new Error(`${errorText(thrown)}; "kubectl logs" has it when the agent is a pod, --log FILE reads it from elsewhere`, {
      cause: thrown,
    })
  }
}

/** It may have grown for weeks. */
function endOf(path: string): string {
  const file = openSync(path, 'r')
  try {
    const { size } = fstatSync(file)
    const bytes = Buffer.alloc(Math.min(size, LOG_BYTES))
    const read = readSync(file, bytes, 0, bytes.length, size - bytes.length)
    return bytes.toString('utf8', 0, read)
  } finally {
    closeSync(file)
  }
}

function podLog(): string | undefined {
  if (!existsSync(POD_LOGS)) return undefined
  const logs = readdirSync(POD_LOGS)
    .filter((pod) => /netplane.*(agent|node)/.test(pod))
    .flatMap((pod) => readdirSync(join(POD_LOGS, pod), { recursive: true, encoding: 'utf8' }).map((name) => join(POD_LOGS, pod, name)))
    .filter((path) => path.endsWith('.log'))
  return logs.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0]
}
