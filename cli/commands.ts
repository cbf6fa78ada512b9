// SPDX-License-Identifier: Apache-2.0
/** The commands of netplanectl as data: what is run, and what is said of it. Layer: cli. */
import { DEFAULT_PIN_DIR } from '#agent/maps/catalogue.ts'
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
  { name: 'json', about: 'one JSON array instead of a table' },
  { name: 'pins', value: 'DIR', about: `where the agent pins its maps (default: ${DEFAULT_PIN_DIR})` },
  { name: 'help', about: 'this text' },
]

export const commands: readonly Command[] = [
  { name: 'bpf nat', about: 'frontends and the backends that packets to them may go to', flags: FILTERS, print: printerOf(nat) },
  { name: 'bpf conntrack', about: 'flows, each once', flags: FILTERS, print: printerOf(conntrack) },
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
  const parts = commands.map(({ name, about, flags }) => [line(name, about), ...flags.map(flagLine)].join('\n'))
  return [
    "netplanectl: what is in this node's data plane, read from its pinned maps; no agent has to run (root)",
    '',
    ...parts,
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
  return `  ${what.padEnd(18)}  ${about}`
}
