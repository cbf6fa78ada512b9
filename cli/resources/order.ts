// SPDX-License-Identifier: Apache-2.0
/** Arguments of the commands that ask or change a cluster. Layer: cli (pure). */
import { load } from 'js-yaml'
import { ConfigError, errorText } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import type { Resource } from '#lib/kube/resources.ts'
import { readCompletion, type CompletionOrder } from '../completion/order.ts'
import { readGiven, type Given } from '../given.ts'
import { readIpam, type IpamOrder } from '../ipam/order.ts'
import type { ClusterCommand } from './commands.ts'
import { readFormat, type Format } from './format.ts'
import { ALL_RESOURCES, resourceOf, V3_RESOURCES } from './kinds.ts'

/** What flags say of how the cluster is reached. */
export interface ConnectionFlags {
  readonly kubeconfig: string | undefined
  readonly context: string | undefined
  readonly config: string | undefined
}

export function connectionOf(given: Given): ConnectionFlags {
  return { kubeconfig: given.text('kubeconfig'), context: given.text('context'), config: given.text('config') }
}

/** An object of a kind. */
export interface Target {
  readonly resource: Resource
  readonly name: string
}

export interface FileChoice {
  readonly paths: readonly string[]
  readonly recursive: boolean
  /** a file without objects is no error */
  readonly skipEmpty: boolean
}

interface Common {
  readonly connection: ConnectionFlags
}

interface Written extends Common {
  readonly allowMismatch: boolean
  readonly namespace: string
}

/** By their names, as files name them, or all of a kind. */
export type Choice =
  | { readonly by: 'name'; readonly targets: readonly Target[] }
  | { readonly by: 'file'; readonly files: FileChoice }
  | { readonly by: 'kind'; readonly resource: Resource; readonly selector: string | undefined; readonly allNamespaces: boolean }

export interface GetOrder extends Common {
  readonly kind: 'get'
  readonly allowMismatch: boolean
  readonly choice: Choice
  readonly namespace: string
  readonly format: Format
  readonly isExport: boolean
}

export interface WriteOrder extends Written {
  readonly kind: 'apply' | 'create' | 'replace'
  readonly files: FileChoice
  readonly skipExists: boolean
}

export interface ValidateOrder {
  readonly kind: 'validate'
  readonly files: FileChoice
  readonly namespace: string
}

export interface DeleteOrder extends Written {
  readonly kind: 'delete'
  readonly choice: Exclude<Choice, { readonly by: 'kind' }>
  readonly skipNotExists: boolean
}

export interface PatchOrder extends Written {
  readonly kind: 'patch'
  readonly target: Target
  readonly type: 'merge' | 'json'
  readonly patch: unknown
}

export interface LabelOrder extends Written {
  readonly kind: 'label'
  readonly target: Target
  /** null: it is to go */
  readonly labels: ReadonlyMap<string, string | null>
  readonly overwrite: boolean
}

export interface VersionOrder extends Common {
  readonly kind: 'version'
  readonly client: boolean
  readonly settings: boolean
  readonly json: boolean
}

export interface ClusterBundleOrder extends Common {
  readonly kind: 'bundle'
  readonly output: string | undefined
  readonly sinceSeconds: number
  readonly maxLogs: number
  readonly json: boolean
}

export interface ConvertOrder {
  readonly kind: 'convert'
  readonly files: FileChoice
  readonly namespace: string
  readonly format: 'yaml' | 'json'
  readonly ignoreValidation: boolean
}

/** Of those that need a cluster. */
export type OnlineOrder = GetOrder | WriteOrder | DeleteOrder | PatchOrder | LabelOrder
export type VerbOrder = OnlineOrder | ValidateOrder
export type ClusterOrder = VerbOrder | VersionOrder | ClusterBundleOrder | IpamOrder | ConvertOrder | CompletionOrder

/** Throws ConfigError for what is not known. */
export function readClusterOrder(command: ClusterCommand, args: readonly string[]): ClusterOrder | { readonly kind: 'help' } {
  const { name, flags, groups, takesWords, usage } = command
  const all = [...flags, ...groups.flatMap((group) => group.flags)]
  const given = readGiven({ name, flags: all, ...(takesWords ? { words: usage } : {}) }, args)
  if (given.has('help')) return { kind: 'help' }
  const connection = connectionOf(given)
  const namespace = given.text('namespace') ?? 'default'
  const allowMismatch = given.has('allow-version-mismatch')
  const written = { connection, namespace, allowMismatch }
  switch (name) {
    case 'get': {
      const choice = readChoice(name, given, ALL_RESOURCES)
      const isExport = given.has('export')
      if (isExport && choice.by !== 'name') throw new ConfigError('--export', 'needs names')
      return { kind: name, ...written, choice, format: readFormat(given.text('output')), isExport }
    }
    case 'apply':
    case 'create':
    case 'replace':
      return { kind: name, ...written, files: readFileChoice(name, given), skipExists: given.has('skip-exists') }
    case 'delete': {
      const choice = readChoice(name, given, V3_RESOURCES)
      if (choice.by === 'kind') throw new ConfigError(name, 'needs names, or -f FILE')
      return { kind: name, ...written, choice, skipNotExists: given.has('skip-not-exists') }
    }
    case 'validate':
      return { kind: name, namespace, files: readFileChoice(name, given) }
    case 'patch':
      return { kind: name, ...written, ...readPatch(given) }
    case 'label': {
      const { target, rest } = readTarget(name, given.words)
      const labels = readLabels(rest, given.has('remove'))
      return { kind: name, ...written, target, labels, overwrite: given.has('overwrite') }
    }
    case 'version':
      return { kind: name, connection, client: given.has('client'), settings: given.has('settings'), json: given.has('json') }
    case 'bundle':
      return {
        kind: name,
        connection,
        output: given.text('output'),
        sinceSeconds: readSince(given.text('since') ?? '24h'),
        maxLogs: readCount('--max-logs', given.text('max-logs') ?? '50'),
        json: given.has('json'),
      }
    case 'ipam show':
    case 'ipam check':
    case 'ipam release':
      return readIpam(name, given, written)
    case 'convert': {
      const format = readFormat(given.text('output') ?? 'yaml').kind
      if (format !== 'yaml' && format !== 'json') throw new ConfigError('--output', 'must be yaml or json')
      return { kind: name, files: readFileChoice(name, given), namespace, format, ignoreValidation: given.has('ignore-validation') }
    }
    case 'completion':
      return readCompletion(given.words)
  }
}

function readChoice(command: string, given: Given, among: readonly Resource[]): Choice {
  const [kind, ...names] = given.words
  const [selector, allNamespaces] = [given.text('selector'), given.has('all-namespaces')]
  const isNarrowed = selector !== undefined || allNamespaces
  if (given.has('filename')) {
    if (kind !== undefined) throw new ConfigError(command, `${JSON.stringify(kind)} is too much beside -f`)
    if (isNarrowed) throw new ConfigError(command, 'files name the objects: neither -l nor -A goes with -f')
    return { by: 'file', files: readFileChoice(command, given) }
  }
  if (kind === undefined) throw new ConfigError(command, 'needs KIND, or -f FILE')
  if (!kind.includes('/') && names.length === 0) return { by: 'kind', resource: resourceOf(kind, among), selector, allNamespaces }
  if (isNarrowed) throw new ConfigError(command, 'names choose the objects: neither -l nor -A goes with them')
  return { by: 'name', targets: readTargets(given.words, among) }
}

/** "KIND NAME NAME", or "KIND/NAME KIND/NAME" as `-o name` shows them. */
function readTargets(words: readonly string[], among: readonly Resource[]): readonly Target[] {
  const [kind = '', ...names] = words
  if (!kind.includes('/')) return names.map((name) => ({ resource: resourceOf(kind, among), name }))
  return words.map((word) => {
    const at = word.indexOf('/')
    if (at < 0) throw new ConfigError('name', `${JSON.stringify(word)} is no KIND/NAME as those before it`)
    return { resource: resourceOf(word.slice(0, at), among), name: word.slice(at + 1) }
  })
}

function readTarget(command: string, words: readonly string[]): { readonly target: Target; readonly rest: readonly string[] } {
  const count = words[0]?.includes('/') === true ? 1 : 2
  const [target] = words.length < count ? [] : readTargets(words.slice(0, count), V3_RESOURCES)
  if (target === undefined) throw new ConfigError(command, 'needs KIND NAME')
  return { target, rest: words.slice(count) }
}

function readFileChoice(command: string, given: Given): FileChoice {
  const paths = given.texts('filename')
  if (paths.length === 0) throw new ConfigError(command, 'needs -f FILE')
  return { paths, recursive: given.has('recursive'), skipEmpty: given.has('skip-empty') }
}

function readPatch(given: Given): Pick<PatchOrder, 'target' | 'type' | 'patch'> {
  const { target, rest } = readTarget('patch', given.words)
  const [more] = rest
  if (more !== undefined) throw new ConfigError('patch', `${JSON.stringify(more)} is too much`)
  const [text, typed] = [given.text('patch'), given.text('type') ?? 'merge']
  if (text === undefined) throw new ConfigError('patch', 'needs --patch')
  const type = typed === 'strategic' ? 'merge' : typed
  if (type !== 'merge' && type !== 'json') throw new ConfigError('--type', `${JSON.stringify(typed)} is none of merge, json, strategic`)
  const patch = parsedPatch(text)
  if (type === 'merge' && !isObject(patch)) throw new ConfigError('--patch', 'must be an object, like {"spec": {"order": 5}}')
  if (type === 'json' && !Array.isArray(patch)) throw new ConfigError('--patch', 'must be a list of operations (RFC 6902)')
  return { target, type, patch }
}

function parsedPatch(text: string): unknown {
  try {
    return load(text)
  } catch (thrown) {
    throw new ConfigError('--patch', `is neither JSON nor YAML: ${errorText(thrown)}`, thrown)
  }
}

function readLabels(words: readonly string[], isRemoval: boolean): LabelOrder['labels'] {
  if (words.length === 0) throw new ConfigError('label', 'needs KEY=VALUE, or KEY-')
  return new Map(
    words.map((word) => {
      const at = word.indexOf('=')
      if (isRemoval && at < 0) return [word.replace(/-$/, ''), null] as const
      if (!isRemoval && at > 0) return [word.slice(0, at), word.slice(at + 1)] as const
      if (!isRemoval && at < 0 && /.-$/.test(word)) return [word.slice(0, -1), null] as const
      throw new ConfigError('label', `${JSON.stringify(word)} is no ${isRemoval ? 'KEY' : 'KEY=VALUE or KEY-'}`)
    }),
  )
}

const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const

function readSince(text: string): number {
  const [, count = '', unit = ''] = /^([1-9]\d{0,6})([smhd])$/.exec(text) ?? []
  if (unit !== 's' && unit !== 'm' && unit !== 'h' && unit !== 'd')
    throw new ConfigError('--since', `${JSON.stringify(text)} is no time like 24h`)
  return Number(count) * SECONDS[unit]
}

function readCount(flag: string, text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw new ConfigError(flag, `${JSON.stringify(text)} is no number`)
  return Number(text)
}
