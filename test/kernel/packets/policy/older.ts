// SPDX-License-Identifier: Apache-2.0
/** Connections whose beginning was not seen: either end may have opened them, so rules of both directions are asked,
 * unless the kernel's own table says which. Layer: test. */
import { tcp } from '../../../../testkit/packets/packet.ts'
import type { PacketCase, Step } from '../../../../testkit/packets/case.ts'
import { sctp } from '../asks-back.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { A_WHILE, at, families } from '../../../../testkit/packets/cluster.ts'
import { DENIED, opens, policy } from './policies.ts'

const [SERVED, PORT] = [8080, 44_000]
/** longer than a half-open connection may be idle, ms */
const LATE = 10_000

function forFamily(f: Family): PacketCase[] {
  const server = at(f.pod, SERVED)
  const closed = [policy('in', { of: 'pod', ingress: [] })]
  /** about another pod */
  const none = [policy('else', { of: 'masked', ingress: [] })]
  const held = [policy('out', { of: 'pod', egress: [] })]
  const by = (say: string, through: Step['through'], packet: Uint8Array): Pick<Step, 'say' | 'through' | 'packet'> => ({
    say,
    through,
    packet,
  })
  const passes = { action: 'redirect' } as const
  return [
    ...[
      { say: 'a pod here', client: f.secondPod, through: 'from_workload' },
      { say: 'a host', client: f.client, through: 'from_host' },
    ].flatMap(({ say, client: addr, through }): PacketCase[] => {
      const client = at(addr, PORT)
      const hook = through === 'from_host' ? 'from_host' : 'from_workload'
      const answer = by('answer', 'from_workload', tcp(server, client, { flags: 'PA' }))
      const request = by('request', hook, tcp(client, server, { flags: 'PA' }))
      return [
        {
          name: `${f.name}: the answer of an older connection does not open a closed pod, to ${say}`,
          given: { policies: closed },
          steps: [
            { ...answer, ...DENIED, flows: [{ proto: 6, from: server, to: client, gone: true }] },
            { ...request, ...DENIED },
            { ...answer, ...DENIED },
          ],
        },
        {
          name: `${f.name}: the request of an older connection does not open a pod that may not send, to ${say}`,
          given: { policies: held },
          steps: [
            { ...request, ...DENIED, flows: [{ proto: 6, from: client, to: server, gone: true }] },
            { ...answer, ...DENIED },
          ],
        },
        {
          name: `${f.name}: an older connection goes on that both directions' rules allow, with ${say}`,
          newer: true,
          given: { policies: opens(SERVED) },
          steps: [
            { ...answer, ...passes },
            { ...request, ...passes },
            { ...answer, ...passes, age: A_WHILE },
          ],
        },
        {
          name: `${f.name}: an older connection is asked about in both directions when rules change, with ${say}`,
          given: { policies: none },
          steps: [
            { ...answer, ...passes },
            { ...request, ...passes },
            { ...answer, say: 'answer of a closed pod', policies: closed, ...DENIED },
            { ...request, say: 'request to it', ...DENIED },
            { ...answer, say: 'answer of one that may not send', policies: held, ...DENIED },
            { ...request, say: 'request to one', ...DENIED },
            { ...request, say: 'request without rules', policies: none, ...passes },
            { ...answer, say: 'answer without rules', ...passes },
          ],
        },
        {
          name: `${f.name}: a connection whose entry has run out is an older one, with ${say}`,
          given: { policies: none },
          steps: [
            { ...request, say: 'SYN', packet: tcp(client, server, { flags: 'S' }), ...passes },
            { ...answer, say: 'SYN-ACK', packet: tcp(server, client, { flags: 'SA' }), ...passes },
            {
              ...answer,
              say: 'answer long after',
              age: LATE,
              policies: closed,
              ...DENIED,
              flows: [{ proto: 6, from: server, to: client, gone: true }],
            },
            { ...request, say: 'request long after', ...DENIED },
          ],
        },
        {
          name: `${f.name}: a connection that begins is asked about in its own direction alone, with ${say}`,
          given: { policies: closed },
          steps: [
            { ...answer, say: 'SYN of the closed pod', packet: tcp(server, client, { flags: 'S' }), ...passes },
            { ...request, say: 'SYN-ACK', packet: tcp(client, server, { flags: 'SA' }), ...passes },
            { ...answer, say: 'ACK', packet: tcp(server, client, { flags: 'A' }), ...passes },
            { ...request, say: 'data after a while', age: A_WHILE, ...passes },
          ],
        },
        ...[false, true].flatMap((takeover): PacketCase[] => {
          const one = takeover ? "another proxy's connection" : 'a connection'
          const goes = takeover ? ({ action: 'pass', out: 'same' } as const) : passes
          const [byPod, byPeer] = [
            { from: server, to: client },
            { from: client, to: server },
          ]
          return [
            {
              name: `${f.name}: a closed pod keeps ${one} that it has opened, and hears an answer first, with ${say}`,
              newer: true,
              given: { policies: closed, takeover, older: [byPod] },
              steps: [
                { ...request, ...goes },
                { ...answer, ...goes },
                { ...request, say: 'request after a while', age: A_WHILE, ...goes },
                { ...answer, say: 'answer of one that may not send', policies: held, ...DENIED },
                { ...request, say: 'request to one', ...DENIED },
              ],
            },
            {
              name: `${f.name}: a closed pod keeps ${one} that it has opened, and speaks first, with ${say}`,
              given: { policies: closed, takeover, older: [byPod] },
              steps: [
                { ...answer, ...goes },
                { ...request, ...goes },
                { ...request, say: 'SYN of its peer', packet: tcp(client, server, { flags: 'S' }), ...DENIED },
              ],
            },
            {
              name: `${f.name}: a pod that may not send keeps ${one} that its peer has opened, with ${say}`,
              newer: true,
              given: { policies: held, takeover, older: [byPeer] },
              steps: [
                { ...answer, ...goes },
                { ...request, ...goes },
                { ...answer, say: 'answer of a closed pod', policies: closed, ...DENIED },
              ],
            },
            {
              name: `${f.name}: a closed pod loses ${one} that its peer has opened, with ${say}`,
              given: { policies: closed, takeover, older: [byPeer] },
              steps: [
                { ...answer, ...DENIED },
                { ...request, ...DENIED },
              ],
            },
            {
              name: `${f.name}: the kernel's table is not believed for long about ${one}, with ${say}`,
              given: { policies: closed, takeover, older: [{ ...byPod, over: true }] },
              steps: [
                { ...request, ...DENIED },
                { ...answer, ...DENIED },
              ],
            },
          ]
        }),
        {
          name: `${f.name}: another proxy's connection is no way into a closed pod, from ${say}`,
          given: { policies: closed, takeover: true },
          steps: [
            { ...answer, ...DENIED },
            { ...request, ...DENIED },
            { ...answer, say: 'without rules', policies: none, action: 'pass', out: 'same' },
            { ...answer, say: 'with them again', policies: closed, ...DENIED },
          ],
        },
      ]
    }),
    {
      name: `${f.name}: an older SCTP association does not open a closed pod`,
      given: { policies: closed },
      steps: [
        { ...by('goes on', 'from_workload', sctp([f.pod, SERVED], [f.secondPod, PORT], 7)), ...DENIED },
        { ...by('goes on, back', 'from_workload', sctp([f.secondPod, PORT], [f.pod, SERVED], 8)), ...DENIED },
      ],
    },
  ]
}

export const cases: readonly PacketCase[] = families.flatMap(forFamily)
