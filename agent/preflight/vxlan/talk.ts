// SPDX-License-Identifier: Apache-2.0
/** Who has heard whom, of the peers that a node asks. Layer: agent (pure). */
import { encodeHello, idOf, type Received } from './hello.ts'
import type { Family, Peer } from './peers.ts'

export interface Outgoing {
  readonly address: string
  readonly family: Family
  readonly bytes: Buffer
}

export interface Talk {
  /** to those of whom not all is known yet */
  next(): readonly Outgoing[]
  /** What is to be answered; undefined: nothing. */
  take(received: Received): Outgoing | undefined
  /** every peer has heard us and was heard */
  readonly isDone: boolean
  /** peers that were not heard */
  readonly unheard: readonly Peer[]
  /** peers that were heard, and have not heard us */
  readonly deaf: readonly Peer[]
}

export interface TalkOptions {
  readonly node: string
  readonly run: string
  readonly peers: readonly Peer[]
}

export function talkOf({ node, run, peers }: TalkOptions): Talk {
  const [self, own] = [idOf(node), idOf(run)]
  const keyOf = (id: string, family: Family): string => `${id} ${family}`
  const byKey = new Map(peers.map((peer) => [keyOf(idOf(peer.name), peer.family), peer]))
  const heard = new Set<string>()
  const heardUs = new Set<string>()
  const isOpen = (key: string): boolean => !heard.has(key) || !heardUs.has(key)
  const outgoing = (to: string, { address, family }: Pick<Outgoing, 'address' | 'family'>): Outgoing => ({
    address,
    family,
    bytes: encodeHello({ from: self, to, run: own, heard: heard.has(keyOf(to, family)), known: heardUs.has(keyOf(to, family)) }),
  })
  return {
    next: () => [...byKey].flatMap(([key, peer]) => (isOpen(key) ? [outgoing(idOf(peer.name), peer)] : [])),
    take: ({ hello, source, family }) => {
      if (hello.to !== self || hello.from === self || hello.run !== own) return undefined
      const key = keyOf(hello.from, family)
      heard.add(key)
      if (hello.heard) heardUs.add(key)
      // it is told once more each time that it says that it does not know
      return hello.known ? undefined : outgoing(hello.from, { address: source, family })
    },
    get isDone() {
      return ![...byKey.keys()].some(isOpen)
    },
    get unheard() {
      return [...byKey].flatMap(([key, peer]) => (heard.has(key) ? [] : [peer]))
    },
    get deaf() {
      return [...byKey].flatMap(([key, peer]) => (heard.has(key) && !heardUs.has(key) ? [peer] : []))
    },
  }
}
