// SPDX-License-Identifier: Apache-2.0
/** `explain` on a node: its loaded programs are run with a packet, its maps tell why. Layer: cli. */
import { ifindexOf } from '#native'
import { ConfigError } from '#lib/base/errors.ts'
import { protocolText, type Addr } from '#lib/base/ip.ts'
import type { Packet } from '#lib/policy/packet.ts'
import { enumValue } from '#agent/maps/btf.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { ruleNames } from '../../agent.ts'
import type { ExplainOrder } from '../../args.ts'
import { nextHopOf } from '../../bpf/next-hop.ts'
import { packetsBetween } from '../packets.ts'
import type { EndName, Query } from '../query.ts'
import { interfaceNames } from '../../interfaces.ts'
import { PinnedTables } from '../../pins.ts'
import { linesText, type CommandResult } from '../../command-result.ts'
import { flowRules, type RuleNames } from '../../rules.ts'
import { endRecord } from '../../text.ts'
import { attachedProgram } from './attached.ts'
import { checksOf } from './checks.ts'
import { addressesOf, sourceOf, type Devices } from './ends.ts'
import { disagreementOf, type FlowMade, type OnlineRecord, type RunRecord } from './record.ts'
import { freshPacket, runPacket, sentAs, type RunResult } from './run.ts'
import { serviceOf } from './service.ts'
import { onlineText } from './text.ts'

interface Node {
  readonly tables: PinnedTables
  readonly devices: Devices
  readonly names: RuleNames
}

/** Throws ConfigError for ends that are not known here, PinsError when maps or programs cannot be used. */
export async function explainOnline({ pins, agent, query, device, json }: ExplainOrder): Promise<CommandResult> {
  using tables = new PinnedTables(pins)
  const devices: Devices = { indexOf: ifindexOf, nameOf: interfaceNames() }
  const packets = await packetsOf(query, tables, devices)
  const names = await ruleNames(agent)
  const flows: OnlineRecord[] = []
  for (const packet of packets) flows.push(await ask({ tables, devices, names }, packet, { given: query.sourcePort !== undefined, device }))
  const exitCode = flows.some(({ disagreement }) => disagreement !== null) ? 1 : 0
  const warnings = names.missing === undefined ? [] : [names.missing]
  if (json) return { text: `${JSON.stringify({ warnings, flows }, undefined, 1)}\n`, warnings: '', exitCode }
  return { text: flows.map(onlineText).join('\n'), warnings: linesText(warnings), exitCode }
}

/** The source port is chosen later unless it is given. */
async function packetsOf(query: Query, tables: PinnedTables, devices: Devices): Promise<readonly Packet[]> {
  const { from, to, protocol, sourcePort } = query
  const [sources, destinations] = [await addressesOf(from, tables, devices), await addressesOf(to, tables, devices)]
  return packetsBetween(query, { sources, destinations, sport: sourcePort ?? 0, dport: protocol === 'icmp' ? 0 : portOf(to) })
}

function portOf({ text, port }: EndName): number {
  if (port === undefined || !/^\d+$/.test(port)) throw new ConfigError(text, 'needs the number of a port: maps do not have names of ports')
  return Number(port)
}

async function ask(
  node: Node,
  wanted: Packet,
  of: { readonly given: boolean; readonly device: string | undefined },
): Promise<OnlineRecord> {
  const { tables, devices, names } = node
  const packet = freshPacket(tables, wanted, of.given)
  const { ifindex, mac, program: name } = await sourceOf(packet.src, tables, { devices, device: of.device })
  const inside = name === 'from_workload'
  const { service, packets, frontend } = serviceOf(tables, packet, inside)
  const device = devices.nameOf(ifindex)
  const program = attachedProgram(name, { index: ifindex, device })
  try {
    const result = runPacket(tables, { program, ifindex, mac, packet, frontend, inside })
    const run = runRecord(node, { packet, result })
    const at = (addr: Addr, port: number) => endRecord({ addr, port })
    const outcomes = packets.map((one) => {
      const passage = { before: packet, packet: one, device: inside ? 0 : ifindex, out: wayOut(tables, one, result) }
      const checks = checksOf({ tables, deviceName: devices.nameOf, names }, passage)
      const verdict = checks.some((check) => check.verdict === 'deny') ? ('deny' as const) : ('allow' as const)
      return { to: at(one.dst, one.dport), verdict, checks }
    })
    return {
      proto: protocolText(packet.protocol),
      icmp: packet.icmp ?? null,
      from: at(packet.src, packet.sport),
      to: at(packet.dst, packet.dport),
      at: { program: name, id: program.info().id, interface: device },
      run,
      service,
      outcomes,
      disagreement: disagreementOf(run, outcomes, names),
    }
  } finally {
    program.close()
  }
}

/** The device of the network by which a packet leaves, where the flow tells it. */
function wayOut(tables: PinnedTables, { dst }: Packet, { flow }: RunResult): number {
  if (flow === undefined) return 0
  const { btf } = tables.open(catalogue.np_ct)
  const { flags = 0, ifindex = 0 } = flow.value.leg[flow.direction] ?? {}
  const bits = ['LEG_NEIGH', 'LEG_ENCAP', 'LEG_STACK'].map((name) => enumValue(btf, 'leg_flag', name))
  const isHere = (flags & enumValue(btf, 'leg_flag', 'LEG_NAT')) === 0 || flow.value.out.dst === dst
  return isHere && bits.some((bit) => (flags & bit) !== 0) ? ifindex : 0
}

function runRecord(
  { tables, devices, names }: Node,
  { packet, result }: { readonly packet: Packet; readonly result: RunResult },
): RunRecord {
  const { action, answered, drops, flow } = result
  const verdict = verdictOf(result)
  if (flow === undefined) return { verdict, action, drops: action === 'drop' || answered ? drops : [], flow: null }
  const { btf } = tables.open(catalogue.np_ct)
  const sent = sentAs(flow, { packet, nat: enumValue(btf, 'leg_flag', 'LEG_NAT') })
  const { flags = 0, ifindex = 0 } = flow.value.leg[flow.direction] ?? {}
  const made: FlowMade = {
    from: endRecord({ addr: sent.src, port: sent.sport }),
    to: endRecord({ addr: sent.dst, port: sent.dport }),
    way: nextHopOf(btf, devices.nameOf)({ flags, ifindex, via: flow.value.via }),
    rules: flowRules(flow.value, names),
  }
  return { verdict, action, drops: [], flow: made }
}

function verdictOf({ action, answered, drops, flow }: RunResult): RunRecord['verdict'] {
  if (action === 'drop') return drops.includes('policy') ? 'deny' : 'drop'
  if (flow !== undefined) return 'allow'
  return answered ? 'refuse' : 'pass'
}
