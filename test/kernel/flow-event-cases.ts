// SPDX-License-Identifier: Apache-2.0
/** What programs tell of flows, on whichever kernel. Layer: test. */
import type { FlowEvent } from '#agent/maps/shapes.ts'
import { formatAddr } from '#lib/base/ip.ts'
import { waitFor } from '../../lab/wait.ts'
import type { Given, Step } from '../../testkit/packets/case.ts'
import { NODE_PORT, at, families, type Family } from '../../testkit/packets/cluster.ts'
import { tcp, udp } from '../../testkit/packets/packet.ts'
import type { PacketRunner } from '../../testkit/packets/runner.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import { policy, ruleName, toPort } from './packets/policy/policies.ts'

const PORT = 40_000
const SOON = { timeoutMs: HANG_MS, everyMs: 10 }
const KINDS = ['', 'opened', 'denied', 'ended', 'dropped']
/** of a kind of drop in a while, on each processor */
const MOST = 64
const WHILE_MS = 2 ** 27 / 1e6
const FLOOD = 1000

type Packets = readonly (readonly [Step['through'], Uint8Array, Step['action']])[]

/** Calls `count` for each, with what was wrong. */
export async function flowEventCases(runner: PacketRunner, count: (name: string, wrong: string | undefined) => void): Promise<void> {
  for (const family of families) for (const { name, run } of CASES) count(`${family.name}: ${name}`, await run(new World(runner), family))
}

/** One case's events. */
class World {
  readonly runner: PacketRunner
  readonly told: FlowEvent[] = []

  constructor(runner: PacketRunner) {
    this.runner = runner
    runner.listen((event) => void this.told.push(event))
  }

  /** What was wrong with the packets themselves. */
  pass(given: Given, packets: Packets): string | undefined {
    const steps = packets.map(([through, packet, action], index): Step => ({ say: `packet ${index}`, through, packet, action }))
    return this.runner.run({ name: 'events', given, steps })
  }

  /** Undefined when these texts come, in any order, and no more: perf buffers keep none between processors, and times
   * are as fine as the kernel's coarse clock. */
  async expect(texts: readonly string[], textOf: (event: FlowEvent) => string): Promise<string | undefined> {
    await waitFor(() => (this.told.length >= texts.length ? true : undefined), SOON)
    const [got, wanted] = [this.told.map(textOf), texts].map((all) => all.toSorted().join('; '))
    return got === wanted ? undefined : `told "${got ?? ''}" instead of "${wanted ?? ''}"`
  }
}

/** "opened 10.10.1.6:40000 > 10.96.0.10:80, 10.10.1.6:40000 > 10.10.1.5:8080" */
function withEnds({ kind, sent, flow }: FlowEvent): string {
  const [meant, reached] = [sent, flow].map(({ src, sport, dst, dport }) => `${at(formatAddr(src), sport)} > ${at(formatAddr(dst), dport)}`)
  return `${KINDS[kind] ?? kind} ${meant}, ${reached}`
}

interface EventCase {
  readonly name: string
  readonly run: (world: World, f: Family) => Promise<string | undefined>
}

const CASES: readonly EventCase[] = [
  {
    name: 'a connection to a service is told when it begins, as it was meant and where it goes, and when it ends',
    run: async (world, f) => {
      const [client, front, back] = [at(f.secondPod, PORT), at(f.vip, 80), at(f.pod, 8080)]
      const send = (flags: string): Uint8Array => tcp(client, front, { flags })
      const answer = (flags: string): Uint8Array => tcp(back, client, { flags, ack: 1001 })
      const wrong = world.pass({ backends: [{ addr: f.pod, port: 8080 }] }, [
        ['from_workload', send('S'), 'redirect'],
        ['from_workload', answer('SA'), 'redirect'],
        ['from_workload', send('A'), 'redirect'],
        ['from_workload', send('FA'), 'redirect'],
        ['from_workload', answer('FA'), 'redirect'],
        ['from_workload', send('A'), 'redirect'],
      ])
      return (
        wrong ??
        (await world.expect(
          ['opened', 'ended'].map((kind) => `${kind} ${client} > ${front}, ${client} > ${back}`),
          withEnds,
        ))
      )
    },
  },
  {
    name: 'a flow that no rule is asked of is told with its own ends, not with those of a flow before',
    run: async (world, f) => {
      const [client, front, back] = [at(f.client, PORT), at(f.node, NODE_PORT), at(f.remotePod, 8080)]
      const before = world.pass({}, [['from_workload', tcp(at(f.secondPod, PORT), at(f.pod, 80), { flags: 'S' }), 'redirect']])
      const given = { backends: [{ addr: f.remotePod, port: 8080, node: f.otherNode }] }
      const wrong = before ?? world.pass(given, [['from_host', tcp(client, front, { flags: 'S' }), 'redirect']])
      const [first, second] = [`${at(f.secondPod, PORT)} > ${at(f.pod, 80)}`, `${client} > ${front}`]
      return wrong ?? (await world.expect([`opened ${first}, ${first}`, `opened ${second}, ${client} > ${back}`], withEnds))
    },
  },
  {
    name: 'what rules deny is told with the rule, and so is what they allow; each packet that is denied is told',
    run: async (world, f) => {
      const policies = [policy('in', { of: 'pod', ingress: [{ action: 'deny', ...toPort(81) }, toPort(80)] })]
      const send = (port: number): Uint8Array => tcp(at(f.secondPod, PORT), at(f.pod, port), { flags: 'S' })
      const wrong = world.pass({ policies }, [
        ['from_workload', send(80), 'redirect'],
        ['from_workload', send(81), 'drop'],
        ['from_workload', send(81), 'drop'],
      ])
      const denied = `denied ${ruleName('in', 'ingress', 0)}`
      const texts = [`opened ${ruleName('in', 'ingress', 1)}`, denied, denied]
      return wrong ?? (await world.expect(texts, ({ kind, ingress_rule }) => `${KINDS[kind] ?? ''} ${world.runner.ruleName(ingress_rule)}`))
    },
  },
  {
    name: 'a packet that ends for another reason is told, and of a flood a part: the others are counted',
    run: async (world, f) => {
      const before = world.runner.counted('COUNT_EVENT_UNTOLD')
      const datagram = udp(at(f.client, PORT), at(f.node, NODE_PORT), { payload: 'x' })
      const wrong = world.pass({ backends: [] }, [])
      // that of a flood before is over
      await new Promise((resolve) => setTimeout(resolve, 2 * WHILE_MS))
      for (let turn = 0; turn < FLOOD; turn++) world.runner.send('from_host', datagram)
      const untold = (): number => world.runner.counted('COUNT_EVENT_UNTOLD') - before
      await waitFor(() => (world.told.length + untold() >= FLOOD ? true : undefined), SOON)
      const kinds = [...new Set(world.told.map(({ kind }) => KINDS[kind]))].join()
      const { length } = world.told
      if (world.told.some(({ flow }) => flow.sport !== 0)) return 'told the flow of a packet before'
      if (wrong !== undefined || (kinds === 'dropped' && length + untold() === FLOOD && length >= MOST && untold() > 0)) return wrong
      return `told ${length} events (${kinds}) of ${FLOOD}, and ${untold()} were counted`
    },
  },
  {
    name: 'nothing is told while flows are not counted',
    run: async (world, f) => {
      const send = (port: number): Packets => [['from_workload', tcp(at(f.secondPod, port), at(f.pod, 80), { flags: 'S' }), 'redirect']]
      const wrong = world.pass({ uncounted: true }, send(PORT)) ?? world.pass({}, send(PORT + 1))
      return wrong ?? (await world.expect([`opened ${PORT + 1}`], ({ kind, sent }) => `${KINDS[kind] ?? ''} ${sent.sport}`))
    },
  },
]
