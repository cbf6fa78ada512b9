// SPDX-License-Identifier: Apache-2.0
/** Command line arguments of netplanectl. Layer: cli (pure). */
import { ConfigError, InternalError } from '#lib/base/errors.ts'
import { DEFAULT_PIN_DIR } from '#agent/maps/catalogue.ts'
import { parsePreflight, type PreflightOptions } from '#agent/preflight/options.ts'
import { DEFAULT_AGENT } from './agent.ts'
import { COMMON, commands, questions, type Command, type QuestionCommand } from './commands.ts'
import { queryOf, readFlow, type Query } from './explain/query.ts'
import { readFilter, type Filter } from './filter.ts'
import { readFlows, type FlowsOrder } from './flows/order.ts'
import { readInstall, type InstallOrder } from './install/order.ts'
import { readMigrate, type MigrateOrder } from './migrate/order.ts'
import { readUpgrade, type UpgradeOrder } from './upgrade/order.ts'
import { readGiven, type Given } from './given.ts'
import { clusterCommands, CONNECTION_FLAGS } from './resources/commands.ts'
import { connectionOf, readClusterOrder, type ClusterOrder, type ConnectionFlags } from './resources/order.ts'

export interface ReportOrder {
  readonly kind: 'report'
  readonly command: Command
  readonly pins: string
  readonly agent: string | undefined
  readonly json: boolean
  readonly filter: Filter
  readonly all: boolean
}

export interface ExplainOrder {
  readonly kind: 'explain'
  /** undefined: this node's own maps and programs are asked */
  readonly resources: string | undefined
  readonly candidate: string | undefined
  readonly query: Query
  readonly entry: string | undefined
  readonly device: string | undefined
  readonly pins: string
  readonly agent: string | undefined
  readonly json: boolean
}

export interface CheckOrder {
  readonly kind: 'policy check'
  readonly path: string
  readonly resources: string | undefined
  readonly flows: string | undefined
  readonly json: boolean
}

export interface NodeStatusOrder {
  readonly kind: 'node status'
  readonly agent?: string | undefined
  /** whose NodeNetwork is shown as well */
  readonly node: string | undefined
  readonly connection: ConnectionFlags
  readonly json: boolean
}

export interface ChecksystemOrder {
  readonly kind: 'node checksystem'
  readonly options: PreflightOptions
  readonly json: boolean
}

export interface NodeBundleOrder {
  readonly kind: 'node bundle'
  /** undefined: named after host and time */
  readonly output: string | undefined
  readonly log: string | undefined
  readonly stateDir: string
  readonly keepDir: string
  readonly agent: string
  readonly pins: string
  readonly json: boolean
}

export type Order =
  | { readonly kind: 'help' }
  | { readonly kind: 'own version' }
  | ReportOrder
  | ExplainOrder
  | FlowsOrder
  | CheckOrder
  | NodeStatusOrder
  | NodeBundleOrder
  | ChecksystemOrder
  | InstallOrder
  | MigrateOrder
  | UpgradeOrder
  | ClusterOrder

/** Where the agent keeps files, unless configured otherwise. */
const STATE_DIR = '/run/netplane'
const KEEP_DIR = '/var/lib/netplane'

const HELP = new Set<string | undefined>([undefined, 'help', '--help', '-h'])
const VERSION = '--version'

/** Throws ConfigError for what is not known. */
export function readArgs(args: readonly string[]): Order {
  if (HELP.has(args[0])) return { kind: 'help' }
  if (args[0] === VERSION) return { kind: 'own version' }
  const isCalled = ({ name }: { readonly name: string }): boolean => args.slice(0, name.split(' ').length).join(' ') === name
  const asking = clusterCommands.find(isCalled)
  if (asking !== undefined) return readClusterOrder(asking, args.slice(asking.name.split(' ').length))
  const question = questions.find(isCalled)
  if (question !== undefined) return readQuestion(question, args.slice(question.name.split(' ').length))
  const words = args.slice(0, 2).join(' ')
  const command = commands.find(({ name }) => name === words)
  if (command === undefined) {
    const names = [...clusterCommands, ...commands, ...questions].map(({ name }) => name)
    throw new ConfigError('command', `${JSON.stringify(words)} is none: ${names.join(', ')}`)
  }
  const given = readGiven({ ...command, flags: [...command.flags, ...COMMON] }, args.slice(2))
  if (given.has('help')) return { kind: 'help' }
  return {
    kind: 'report',
    command,
    pins: given.text('pins') ?? DEFAULT_PIN_DIR,
    agent: given.text('agent'),
    json: given.has('json'),
    filter: readFilter(given.text),
    all: given.has('all'),
  }
}

function readQuestion(command: QuestionCommand, args: readonly string[]): Order {
  const given = readGiven({ ...command, flags: [...command.flags, ...COMMON] }, args)
  if (given.has('help')) return { kind: 'help' }
  if (command.name === 'explain') return readExplain(given)
  if (command.name === 'flows') return readFlows(given)
  if (command.name === 'node status' || command.name === 'node checksystem' || command.name === 'node bundle')
    return readNode(command.name, given)
  if (command.name === 'migrate host-endpoints') return readMigrate(command.name, given)
  if (command.name === 'upgrade plan' || command.name === 'upgrade run' || command.name === 'upgrade back')
    return readUpgrade(command.name, given)
  if (command.name !== 'policy check') return readInstall(command.name, given)
  const [path, ...more] = given.words
  if (path === undefined || more.length > 0) throw new ConfigError(command.name, `needs ${command.words}`)
  const flows = given.text('flows')
  if (flows !== undefined && given.text('resources') === undefined) throw new ConfigError('--flows', 'needs --resources')
  return { kind: 'policy check', path, resources: given.text('resources'), flows, json: given.has('json') }
}

function readNode(kind: 'node status' | 'node checksystem' | 'node bundle', given: Given): Order {
  const [word] = given.words
  if (word !== undefined) throw new ConfigError(kind, `${JSON.stringify(word)} is too much`)
  const [agent, json] = [given.text('agent'), given.has('json')]
  if (kind === 'node status') return { kind, agent, ...readNetwork(given), json }
  if (kind === 'node checksystem') return { kind, options: checksystemOptions(given), json }
  const state = given.text('state-dir')
  const places = { stateDir: state ?? STATE_DIR, keepDir: state ?? KEEP_DIR, pins: given.text('pins') ?? DEFAULT_PIN_DIR }
  return { kind, output: given.text('output'), log: given.text('log'), ...places, agent: agent ?? DEFAULT_AGENT, json }
}

function readNetwork(given: Given): Pick<NodeStatusOrder, 'node' | 'connection'> {
  const node = given.text('node')
  const flag = CONNECTION_FLAGS.find(({ name }) => given.has(name))
  if (flag !== undefined && node === undefined) throw new ConfigError(`--${flag.name}`, 'needs --node')
  return { node, connection: connectionOf(given) }
}

/** As the agent's own command has them. */
function checksystemOptions(given: Given): PreflightOptions {
  const flags = ['cni', 'vxlan-port'].flatMap((flag) => {
    const value = given.text(flag)
    return value === undefined ? [] : [`--${flag}=${value}`]
  })
  const options = parsePreflight(flags)
  if (options === undefined) throw new InternalError('no help is asked for')
  return options
}

function readExplain(given: Given): ExplainOrder {
  const resources = given.text('resources')
  for (const flag of ['with', 'entry'])
    if (resources === undefined && given.has(flag)) throw new ConfigError(`--${flag}`, 'needs --resources')
  return {
    kind: 'explain',
    resources,
    candidate: given.text('with'),
    query: readQuery(given),
    entry: given.text('entry'),
    device: given.text('interface'),
    pins: given.text('pins') ?? DEFAULT_PIN_DIR,
    agent: given.text('agent'),
    json: given.has('json'),
  }
}

function readQuery(given: Given): Query {
  const packet = given.text('packet')
  const [from, to, ...more] = given.words
  if (packet !== undefined) {
    if (from !== undefined) throw new ConfigError('--packet', 'names both ends: FROM and TO are too many')
    return readFlow(packet)
  }
  if (from === undefined || to === undefined || more.length > 0) throw new ConfigError('explain', 'needs FROM and TO')
  return queryOf({ protocol: given.text('protocol') ?? 'tcp', from, to, sourcePort: given.text('source-port') })
}
