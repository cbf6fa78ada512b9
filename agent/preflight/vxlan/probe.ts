// SPDX-License-Identifier: Apache-2.0
/** Whether the tunnel's packets arrive between this node and others, both ways. Layer: agent.
 *
 * Packets are seen as they come in, as programs see them: what has the port, or a firewall behind it, hides none. They
 * are sent as tunnels send, without a socket of UDP: where Netplane runs, no process may send to that port. All nodes
 * do this at about the same time. */
import { closeSync, readFileSync } from 'node:fs'
import { openUdpTap, sendRawUdp } from '#native'
import { systemClock } from '#lib/base/clock.ts'
import { errorCode, errorText } from '#lib/base/errors.ts'
import { finding, type Finding } from '#lib/preflight/findings.ts'
import { packetsOf } from '../../interfaces/tap.ts'
import type { PreflightOptions } from '../options.ts'
import type { Probed } from '../probed.ts'
import { decodePacket } from './hello.ts'
import { parsePeers, peersOf, type Peer } from './peers.ts'
import { ownerFindings } from './port-owners.ts'
import { talkOf, type Outgoing, type Talk } from './talk.ts'

/** Once all is known here, others may still wait for a word that was lost. */
const LINGER_MS = 1000
const REPEAT_MS = 250
const LOOK_MS = 10
/** Of those that the kernel gives to no program by itself. */
const SOURCE_PORT = 61_001

type VxlanOptions = Pick<PreflightOptions, 'vxlanPort' | 'peers' | 'node' | 'run' | 'peersTimeoutMs'>

export async function probeVxlan(options: VxlanOptions): Promise<Probed> {
  const { vxlanPort, peers, node, run, peersTimeoutMs } = options
  const owners = ownerFindings(vxlanPort)
  if (peers === undefined) return { findings: owners, facts: {} }
  const asked = peersOf(node, parsePeers(readFileSync(peers, 'utf8')))
  const talk = talkOf({ node, run, peers: asked })
  const unsent = await converse(talk, vxlanPort, peersTimeoutMs)
  return { findings: [...owners, ...lossFindings(talk, vxlanPort, unsent)], facts: {} }
}

/** `unsent`: of addresses that nothing could be sent to, why. */
export function lossFindings(
  { unheard, deaf }: Pick<Talk, 'unheard' | 'deaf'>,
  port: number,
  unsent: ReadonlyMap<string, string>,
): Finding[] {
  const lost = (code: 'vxlan-lost-from' | 'vxlan-lost-to', { name, address }: Peer): Finding => finding(code, name, address, port)
  return [
    ...[...new Set(unsent.values())].map((reason) => finding('vxlan-send', port, reason)),
    ...unheard.map((peer) => lost('vxlan-lost-from', peer)),
    ...deaf.flatMap((peer) => (unsent.has(peer.address) ? [] : [lost('vxlan-lost-to', peer)])),
  ]
}

/** Until all is known, or time is up. */
async function converse(talk: Talk, port: number, timeoutMs: number): Promise<ReadonlyMap<string, string>> {
  const unsent = new Map<string, string>()
  using stack = new DisposableStack()
  const tap = stack.adopt(openUdpTap(port), closeSync)
  const send = ({ address, bytes }: Outgoing): void => {
    try {
      sendRawUdp(address, SOURCE_PORT, port, bytes)
      unsent.delete(address)
    } catch (thrown) {
      unsent.set(address, sendReason(thrown))
    }
  }
  const started = systemClock.now()
  let [repeatAt, doneAt] = [0, Infinity]
  for (let now = started; now < started + timeoutMs && now < doneAt + LINGER_MS; now = systemClock.now()) {
    if (now >= repeatAt) {
      talk.next().forEach(send)
      repeatAt = now + REPEAT_MS
    }
    for (const packet of packetsOf(tap)) {
      const received = decodePacket(packet)
      const answer = received === undefined ? undefined : talk.take(received)
      if (answer !== undefined) send(answer)
    }
    if (talk.isDone) doneAt = Math.min(doneAt, now)
    await systemClock.sleep(LOOK_MS, NEVER)
  }
  return unsent
}

const NEVER = new AbortController().signal

/** What a firewall says of what leaves. */
function sendReason(error: unknown): string {
  return errorCode(error) === 'EPERM' ? 'a firewall of this node drops it (EPERM)' : errorText(error)
}
