// SPDX-License-Identifier: Apache-2.0
/** Everything that fits the network arrives; the sender of a packet too large for the tunnel hears so. Layer: demo. */
import { hostPort } from '#lib/base/ip.ts'
import { request } from '../../lab/traffic/traffic.ts'
import type { Piece, Row } from '../report.ts'
import type { Family, Stage } from '../stage.ts'
import { failureText } from './answers.ts'

/** Of 1500 bytes, what is left for data behind the headers of IP and of ICMP or UDP. */
const FULL = { 4: 1472, 6: 1452 } as const
const FAMILIES = [4, 6] as const

export async function* mtu(stage: Stage): AsyncGenerator<Piece> {
  const pings: Row[] = []
  for (const family of FAMILIES) {
    pings.push(await ping(stage, { from: 'client', to: stage.addressOf('node/node-a', family), name: 'node-a', family }))
    pings.push(await ping(stage, { from: 'shell-a', to: stage.addressOf('web-2', family), name: 'web-2, same node', family }))
    pings.push(await ping(stage, { from: 'shell-a', to: stage.addressOf('web-1', family), name: 'web-1, other node', family }))
  }
  yield { kind: 'table', head: ['PING FROM', 'TO', 'BYTES', 'SEEN'], rows: pings }
  const streams: Row[] = []
  for (const family of FAMILIES) streams.push(await bulk(stage, family))
  yield { kind: 'table', head: ['TCP FROM', 'TO', 'UP', 'DOWN', 'SEEN'], rows: streams }
  for (const family of FAMILIES) yield* largestDatagram(stage, family)
}

async function ping(stage: Stage, options: { from: string; to: string; name: string; family: Family }): Promise<Row> {
  const bytes = FULL[options.family]
  const outcome = await stage.lab.run(options.from, [
    'ping',
    '-n',
    '-M',
    'do',
    '-c',
    '3',
    '-i',
    '0.2',
    '-W',
    '2',
    '-s',
    String(bytes),
    options.to,
  ])
  const seen = /\d+ packets transmitted.*/.exec(outcome.stdout)?.[0] ?? outcome.stderr.trim()
  return {
    cells: [options.from, `${options.to} (${options.name})`, `${bytes}, unfragmented`, seen.replace(/, time.*/, '')],
    ok: outcome.status === 0 && seen.includes(' 3 received'),
  }
}

async function bulk(stage: Stage, family: Family): Promise<Row> {
  const to = stage.nodePort('node-a', 'tcp', family)
  const result = await request(stage.lab, { from: 'client', to, payload: 300_000, reply: 2_000_000, timeoutMs: 10_000 })
  const seen = result.ok === 1 ? `whole after ${result.latencyMs?.max ?? '?'} ms` : failureText(result)
  return {
    cells: ['client', hostPort(to.address, to.port), '300 kB', '2 MB', seen],
    ok: result.ok === 1 && failureText(result) === 'no failure',
  }
}

/** A datagram that fills the underlay does not fit the tunnel: the entry node says so, and the client's kernel cuts
 * the next ones. */
async function* largestDatagram(stage: Stage, family: Family): AsyncGenerator<Piece> {
  const to = stage.nodePort('node-a', 'udp', family)
  const options = { from: 'client', to, payload: FULL[family], timeoutMs: 1000, rate: 5 }
  const first = await request(stage.lab, options)
  const path = await stage.lab.mustRun('client', ['ip', 'route', 'get', to.address])
  const learnt = /mtu (\d+)/.exec(path)?.[1]
  const next = await request(stage.lab, { ...options, count: 5 })
  const told = first.ok === 0 && learnt !== undefined
  yield {
    kind: 'table',
    head: ['UDP FROM', 'TO', 'BYTES', 'SEEN'],
    rows: [
      {
        cells: [
          'client',
          hostPort(to.address, to.port),
          `${FULL[family]}, the first`,
          `${failureText(first)}; path MTU learnt: ${learnt ?? 'none'}`,
        ],
        ok: told,
      },
      {
        cells: ['client', hostPort(to.address, to.port), `${FULL[family]}, the next 5`, `${next.ok} answered, ${failureText(next)}`],
        ok: next.ok === 5,
      },
    ],
  }
  yield {
    kind: 'evidence',
    title: `ip route get ${to.address}, on the client`,
    lines: path
      .trim()
      .split('\n')
      .map((line) => line.trim()),
  }
}
