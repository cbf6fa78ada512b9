// SPDX-License-Identifier: Apache-2.0
/** From one pod of the node to another, by port. Layer: test. */
import { tcp } from '../../../../testkit/packets/packet.ts'
import type { Step } from '../../../../testkit/packets/case.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { at } from '../../../../testkit/packets/cluster.ts'

/** the source port where a case names no other */
export const PORT = 42_000

/** A packet that goes its way, or is dropped by policy without a flow to remember. */
export function asker(f: Family) {
  const flow = (port: number, sport: number) => ({ from: at(f.secondPod, sport), to: at(f.pod, port) })
  return {
    lets: (say: string, port: number, sport = PORT): Step => {
      const { from, to } = flow(port, sport)
      return { say, through: 'from_workload', packet: tcp(from, to, { flags: 'S' }), action: 'redirect', flows: [{ proto: 6, from, to }] }
    },
    refuses: (say: string, port: number, sport = PORT): Step => {
      const { from, to } = flow(port, sport)
      const packet = tcp(from, to, { flags: 'S' })
      return {
        say,
        through: 'from_workload',
        packet,
        action: 'drop',
        reason: 'DROP_POLICY',
        flows: [{ proto: 6, from, to, gone: true }],
      }
    },
  }
}
