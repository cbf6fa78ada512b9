// SPDX-License-Identifier: Apache-2.0
/** The commands of netplanectl as data: what is run, and its help. Layer: cli. */
import { DEFAULT_PIN_DIR } from '#agent/maps/catalogue.ts'
import { DEFAULT_AGENT } from './agent.ts'
import { affinity } from './bpf/affinity.ts'
import { conntrack } from './bpf/conntrack.ts'
import { counters } from './bpf/counters.ts'
import { nat } from './bpf/nat.ts'
import { routes } from './bpf/routes.ts'
import { flowsCommand } from './flows/order.ts'
import { installCommands, type InstallOrder } from './install/order.ts'
import type { Flag } from './given.ts'
import { migrateCommands, type MigrateOrder } from './migrate/order.ts'
import { printerOf, type Printer } from './report.ts'
import { upgradeCommands, type UpgradeOrder } from './upgrade/order.ts'
import { clusterCommands, CONNECTION_FLAGS, flagGroups } from './resources/commands.ts'

export interface Command {
  readonly name: string
  readonly about: string
  readonly flags: readonly Flag[]
  readonly print: Printer
}

const FILTERS: readonly Flag[] = [
  { name: 'addr', value: 'ADDR', about: 'an address or prefix, of any end, before or after translation' },
  { name: 'port', value: 'PORT', about: 'a port of such an end' },
  { name: 'proto', value: 'PROTO', about: 'tcp, udp, icmp, icmpv6 or a number' },
]

/** Those of every command about a node or flows. */
export const COMMON: readonly Flag[] = [
  { name: 'json', about: 'JSON instead of a table' },
  { name: 'pins', value: 'DIR', about: `where the agent pins its maps (default: ${DEFAULT_PIN_DIR})` },
  { name: 'help', about: 'this text' },
]

/** Of those that name rules. */
export const AGENT: Flag = { name: 'agent', value: 'HOST:PORT', about: `where the agent tells names of rules (default: ${DEFAULT_AGENT})` }

/** Of those that ask the agent. */
const HEALTH: Flag = { name: 'agent', value: 'HOST:PORT', about: `where the agent serves health (default: ${DEFAULT_AGENT})` }

/** One that is asked about flows or the node, not about maps. */
export interface QuestionCommand {
  readonly name:
    | 'explain'
    | 'flows'
    | 'policy check'
    | 'node status'
    | 'node checksystem'
    | 'node bundle'
    | InstallOrder['kind']
    | MigrateOrder['kind']
    | UpgradeOrder['kind']
  readonly about: string
  /** what it takes besides flags */
  readonly words: string
  readonly flags: readonly Flag[]
}

const RESOURCES = 'directory of manifests'

export const questions: readonly QuestionCommand[] = [
  {
    name: 'explain',
    about: 'what becomes of a flow, and by which rules; ends: ns/pod[:port], svc/ns/name:port, node/name[:port], addresses',
    words: 'FROM TO',
    flags: [
      { name: 'resources', value: 'DIR', about: `${RESOURCES}: needs no node; without it the loaded programs are run` },
      { name: 'with', value: 'FILE', about: 'what these manifests (or those of a directory) would change' },
      { name: 'protocol', value: 'PROTO', about: 'tcp (default), udp, sctp, icmp, icmp/TYPE/CODE' },
      { name: 'source-port', value: 'PORT', about: 'of the packet (default: one that no rule means)' },
      { name: 'packet', value: 'TEXT', about: "instead of FROM and TO: 'tcp 10.0.0.1:1234 > 10.96.0.1:80'" },
      { name: 'entry', value: 'NODE', about: 'where a packet from outside comes in (default: where its destination is)' },
      { name: 'interface', value: 'NAME', about: "the nodes' device (default: the one with the node's address)" },
      AGENT,
    ],
  },
  flowsCommand,
  {
    name: 'policy check',
    about: 'what is wrong with policies, whom they select, and which flows they change',
    words: 'FILE|DIR',
    flags: [
      { name: 'resources', value: 'DIR', about: `${RESOURCES}: of the cluster as it is` },
      { name: 'flows', value: 'FILE', about: "lines like 'tcp ns/pod > ns/pod:port'" },
    ],
  },
  {
    name: 'node status',
    about: 'what the agent says of this node; exit code 1 unless it is ready',
    words: '',
    flags: [
      HEALTH,
      { name: 'node', value: 'NAME', about: 'asks the cluster for the NodeNetwork of this name as well' },
      ...CONNECTION_FLAGS,
    ],
  },
  {
    name: 'node checksystem',
    about: 'what this node lacks for Netplane; changes nothing; exit code 1 if something is in the way',
    words: '',
    flags: [
      { name: 'cni', value: 'TYPE', about: 'who plugs pods in: Netplane (default), Local, Chained, None' },
      { name: 'vxlan-port', value: 'PORT', about: 'of the tunnel between nodes (default: 4789)' },
    ],
  },
  {
    name: 'node bundle',
    about: 'all of this node in one file, to find out what is wrong, with or without an agent; no secrets',
    words: '',
    flags: [
      { name: 'output', value: 'FILE', about: 'default: netplane-bundle-HOST-TIME.tar.gz here; -: standard output' },
      { name: 'log', value: 'FILE', about: "the agent's log (default: that of its pod, else the journal's)" },
      { name: 'state-dir', value: 'DIR', about: "the agent's own --state-dir, if it has one" },
      HEALTH,
    ],
  },
  ...installCommands,
  ...migrateCommands,
  ...upgradeCommands,
]

export const commands: readonly Command[] = [
  { name: 'bpf nat', about: 'frontends and the backends that packets to them may go to', flags: FILTERS, print: printerOf(nat) },
  { name: 'bpf conntrack', about: 'flows, each once', flags: [...FILTERS, AGENT], print: printerOf(conntrack) },
  { name: 'bpf routes', about: 'addresses and prefixes that the programs know, by kind', flags: [], print: printerOf(routes) },
  { name: 'bpf affinity', about: 'clients that keep to a backend', flags: [], print: printerOf(affinity) },
  {
    name: 'bpf counters',
    about: 'drops by reason and what else is counted',
    flags: [{ name: 'all', about: 'those as well that have counted nothing' }],
    print: printerOf(counters),
  },
]

export function usage(): string {
  return `${clusterUsage()}\n${nodeUsage()}`
}

export function clusterUsage(): string {
  return [
    'netplanectl: the objects of a cluster, by its API server',
    '',
    ...clusterCommands.map(({ name, usage: takes, ...command }) => part(`${name} ${takes}`.trim(), command)),
    ...flagGroups.flatMap(({ heading, flags }) => ['', `  ${heading}`, ...flags.map(flagLine)]),
    '',
  ].join('\n')
}

export function nodeUsage(): string {
  return [
    "netplanectl: what is in this node's data plane, and what becomes of flows (root, but for --resources, policy check, install, migrate and upgrade)",
    '',
    ...commands.map((command) => part(command.name, command)),
    ...questions.map((question) => part(`${question.name} ${question.words}`.trim(), question)),
    '',
    '  every one of these',
    ...COMMON.map(flagLine),
    '',
    line('--version', 'of this program, in one line'),
    '',
  ].join('\n')
}

function part(head: string, { about, flags }: Pick<Command, 'about' | 'flags'>): string {
  return [line(head, about), ...flags.map(flagLine)].join('\n')
}

function flagLine({ name, short, value, about }: Flag): string {
  return line(`  ${short === undefined ? '' : `-${short}, `}--${name}${value === undefined ? '' : ` ${value}`}`, about)
}

function line(what: string, about: string): string {
  return `  ${what.padEnd(WIDTH)}  ${about}`
}

const WIDTH = 26
