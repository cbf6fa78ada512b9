// SPDX-License-Identifier: Apache-2.0
/** Damaged, odd and forbidden packets. Layer: test. */
import { addrBytes, parseAddr } from '#lib/base/ip.ts'
import { plain, tcp, tunnel } from '../../../../testkit/packets/packet.ts'
import type { PacketCase } from '../../../../testkit/packets/case.ts'
import { chained } from './chain.ts'
import { DENIED, policy } from '../policy/policies.ts'
import type { Family } from '../../../../testkit/packets/cluster.ts'
import { NODE_PORT, VNI, at, families } from '../../../../testkit/packets/cluster.ts'

const PORT = 41000

function damage(f: Family): PacketCase[] {
  const whole = tcp(at(f.client, PORT), at(f.node, NODE_PORT), { flags: 'S' })
  const short = whole.slice(0, whole.length - 8)
  return [
    {
      name: `${f.name}: headers cut short are dropped`,
      given: {},
      steps: [{ say: 'TCP header cut', through: 'from_host', packet: short, action: 'drop', reason: 'DROP_SHORT' }],
    },
    {
      name: `${f.name}: headers that are longer than the packet open no flow, though what is behind them has no ports`,
      given: { policies: [policy('in', { of: 'pod', ingress: [] })] },
      steps: [
        { say: 'of a pod', through: 'from_workload', packet: beyond(f), action: 'drop', reason: 'DROP_SHORT' },
        { say: 'an answer', through: 'from_host', packet: plain(f.client, f.pod, { proto: 50 }), ...DENIED },
      ],
    },
    {
      name: `${f.name}: options and extension headers are read`,
      given: { backends: [{ addr: f.pod, port: 8080 }] },
      steps: [
        {
          say: 'SYN',
          through: 'from_host',
          packet: tcp(at(f.client, PORT), at(f.node, NODE_PORT), { flags: 'S', options: Uint8Array.from([1, 1, 1, 0]), extensions: 2 }),
          action: 'redirect',
          out: tcp(at(f.client, PORT), at(f.pod, 8080), { flags: 'S', ttl: 63, options: Uint8Array.from([1, 1, 1, 0]), extensions: 2 }),
        },
      ],
    },
  ]
}

/** ESP whose headers say that they go on behind the packet's end. */
function beyond(f: Family): Uint8Array {
  const frame = plain(f.pod, f.client, { proto: 50, body: new Uint8Array() })
  if (!f.v4) return chained(frame, [{ type: 51, bytes: Uint8Array.of(0, 4, 0, 0, 0, 0, 0, 0) }], { last: 50 })
  frame[14] = 0x4f
  return frame
}

const mapped: PacketCase = {
  name: 'IPv6: a mapped address on the wire is dropped',
  given: {},
  steps: [{ say: 'mapped source', through: 'from_host', packet: mappedSource(), action: 'drop', reason: 'DROP_MAPPED_ADDRESS' }],
}

function mappedSource(): Uint8Array {
  const frame = tcp('[fd00:50::100]:41000', '[fd00:50::1]:30080', { flags: 'S' })
  frame.set(addrBytes(parseAddr('192.168.50.100')), 14 + 8)
  return frame
}

const tunnelled: PacketCase = {
  name: 'tunnel: inner family unlike outer is dropped',
  given: {},
  steps: [{ say: 'IPv6 in IPv4', through: 'from_host', packet: mixed(), action: 'drop', reason: 'DROP_TUNNEL_HEADER' }],
}

function mixed(): Uint8Array {
  const frame = tunnel('192.168.50.2', '192.168.50.1', { inner: tcp('[fd00:50::100]:1', '[fd00:10:1::5]:2'), vni: VNI, sport: 50000 })
  frame.set([0x86, 0xdd], 14 + 20 + 8 + 8 + 12)
  return frame
}

export const cases: readonly PacketCase[] = [...families.flatMap(damage), mapped, tunnelled]
