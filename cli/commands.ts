// SPDX-License-Identifier: Apache-2.0
/** The commands of netplanectl as data: what is run, and its help. Layer: cli. */
import { DEFAULT_PIN_DIR } from '#agent/maps/catalogue.ts'
import { DEFAULT_AGENT } from './agent.ts'
import { affinity } from './bpf/affinity.ts'
import { conntrack } from './bpf/conntrack.ts'
import { counters } from './bpf/counters.ts'
import { nat } from './bpf/nat.ts'
import { routes } from './bpf/routes.ts'
import { printerOf, type Printer } from './report.ts'

export interface Flag {
  readonly name: string
  /** what follows it: "DIR"; undefined: nothing */
  readonly value?: string
  readonly about: string
}

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

/** Those of every command but version. */
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
  readonly name: 'explain' | 'policy check' | 'node status' | 'node bundle'
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
  {
    name: 'policy check',
    about: 'what is wrong with policies, whom they select, and which flows they change',
    words: 'FILE|DIR',
    flags: [
      { name: 'resources', value: 'DIR', about: `${RESOURCES}: of the cluster as it is` },
      { name: 'flows', value: 'FILE', about: "lines like 'tcp ns/pod > ns/pod:port'" },
    ],
  },
  { name: 'node status', about: 'what the agent says of this node; exit code 1 unless it is ready', words: '', flags: [HEALTH] },
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
  const part = (head: string, { about, flags }: Pick<Command, 'about' | 'flags'>): string =>
    [line(head, about), ...flags.map(flagLine)].join('\n')
  return [
    "netplanectl: what is in this node's data plane, and what becomes of flows (root, but for --resources and policy check)",
    '',
    ...commands.map((command) => part(command.name, command)),
    ...questions.map((question) => part(`${question.name} ${question.words}`.trim(), question)),
    '',
    '  every one of these',
    ...COMMON.map(flagLine),
    '',
    line('version', 'of this program; needs no rights'),
    '',
  ].join('\n')
}

function flagLine({ name, value, about }: Flag): string {
  return line(`  --${name}${value === undefined ? '' : ` ${value}`}`, about)
}

function line(what: string, about: string): string {
  return `  ${what.padEnd(21)}  ${about}`
}
