// SPDX-License-Identifier: Apache-2.0
/** Who asks whom about the tunnel, and what becomes of lost packets: any may be lost. Layer: test. */
import { expect, test } from 'vitest'
import { decodePacket, encodeHello, idOf } from '#agent/preflight/vxlan/hello.ts'
import { parsePeers, peersOf } from '#agent/preflight/vxlan/peers.ts'
import { socketsAt } from '#agent/preflight/vxlan/port-owners.ts'
import { lossFindings } from '#agent/preflight/vxlan/probe.ts'
import { talkOf, type Outgoing, type Talk } from '#agent/preflight/vxlan/talk.ts'

const file = (count: number): string =>
  Array.from({ length: count }, (_, at) => `n${String(at).padStart(4, '0')} 10.0.${at >> 8}.${at & 255} fd00::${at.toString(16)}\n`).join(
    '',
  )

test('few nodes all ask each other, of many each asks sixteen that ask it', () => {
  for (const [count, asked] of [
    [1, 0],
    [2, 1],
    [17, 16],
    [18, 16],
    [5000, 16],
  ] as const) {
    const nodes = parsePeers(file(count))
    const names = (node: string): Set<string> => new Set(peersOf(node, nodes).map(({ name }) => name))
    for (const node of [...nodes.keys()].slice(-40)) {
      const peers = names(node)
      expect(peers.size).toBe(asked)
      expect(peers.has(node)).toBe(false)
      for (const peer of peers) expect(names(peer).has(node)).toBe(true)
    }
  }
})

test('a node is asked at one address of each family that both have', () => {
  const nodes = parsePeers('b 10.0.0.2 10.0.0.3 fd00::2\n\na 10.0.0.1\n')
  expect(peersOf('a', nodes)).toEqual([{ name: 'b', address: '10.0.0.2', family: 'IPv4' }])
  expect(() => parsePeers('a 10.0.0.300\n')).toThrow('--peers: "a 10.0.0.300": "10.0.0.300" is no address')
  expect(() => peersOf('c', nodes)).toThrow('this node, c, is not among them')
})

/** As the tap gives it: an IP header, a UDP header, the packet. */
function delivered(from: string, { bytes, family }: Outgoing): Buffer {
  const v4 = family === 'IPv4'
  const header = Buffer.alloc(v4 ? 24 : 40)
  header[0] = v4 ? 0x46 : 0x60
  const source = peersOf('zz', parsePeers(`zz 0.0.0.0 ::\n${from} ${v4 ? ADDRESSES4[from] : ADDRESSES6[from]}\n`))
  expect(source).toHaveLength(1)
  if (v4) header.set((ADDRESSES4[from] ?? '').split('.').map(Number), 12)
  else header.set([0xfd, ...Array.from({ length: 14 }, () => 0), from === 'a' ? 1 : 2], 8)
  return Buffer.concat([header, Buffer.alloc(8), bytes, Buffer.alloc(6)])
}

const ADDRESSES4: Readonly<Record<string, string>> = { a: '10.0.0.1', b: '10.0.0.2' }
const ADDRESSES6: Readonly<Record<string, string>> = { a: 'fd00::1', b: 'fd00::2' }

type Loses = (from: string, family: string) => boolean

/** Two nodes repeat themselves until both are done, or have tried long. */
function talks(loses: Loses): Readonly<Record<'a' | 'b', Talk>> {
  const nodes = parsePeers('a 10.0.0.1 fd00::1\nb 10.0.0.2 fd00::2\n')
  const of = (node: string): Talk => talkOf({ node, run: '1', peers: peersOf(node, nodes) })
  const both = { a: of('a'), b: of('b') }
  const wire: { readonly from: 'a' | 'b'; readonly out: Outgoing }[] = []
  for (let round = 0; round < 40 && !(both.a.isDone && both.b.isDone); round++) {
    for (const from of ['a', 'b'] as const) wire.push(...both[from].next().map((out) => ({ from, out })))
    for (let one = wire.shift(); one !== undefined; one = wire.shift()) {
      const { from, out } = one
      if (loses(from, out.family)) continue
      const received = decodePacket(delivered(from, out))
      expect(received).toMatchObject({ source: (out.family === 'IPv4' ? ADDRESSES4 : ADDRESSES6)[from], family: out.family })
      const to = from === 'a' ? 'b' : 'a'
      const answer = received === undefined ? undefined : both[to].take(received)
      if (answer !== undefined) wire.push({ from: to, out: answer })
    }
  }
  return both
}

const told = (talk: Talk): string[] => lossFindings(talk, 4789, new Map()).map(({ code, args }) => [code, ...args].join(' '))

test('both are done where most packets arrive, whichever are lost', () => {
  for (let seed = 0; seed < 200; seed++) {
    let state = seed
    const dice = (): boolean => ((state = Math.imul(state, 1664525) + 1013904223) >>> 24) % 3 === 0
    const { a, b } = talks(dice)
    expect([a.isDone, b.isDone, told(a), told(b)]).toEqual([true, true, [], []])
  }
})

test('what is lost one way is told by both, of its family', () => {
  const { a, b } = talks((from, family) => from === 'a' && family === 'IPv6')
  expect(told(a)).toEqual(['vxlan-lost-to b fd00::2 4789'])
  expect(told(b)).toEqual(['vxlan-lost-from a fd00::1 4789'])
})

test('what could not be sent is not told as lost on the way', () => {
  const { a } = talks((from) => from === 'a')
  const reasons = new Map([
    ['10.0.0.2', 'EPERM'],
    ['10.0.0.9', 'EPERM'],
  ])
  expect(lossFindings(a, 1, reasons).map(({ code, args }) => [code, ...args].join(' '))).toEqual([
    'vxlan-send 1 EPERM',
    'vxlan-lost-to b fd00::2 1',
  ])
})

test('words of another run, to another node, or of its own are not heard', () => {
  const talk = talkOf({ node: 'a', run: '1', peers: peersOf('a', parsePeers('a 10.0.0.1\nb 10.0.0.2\n')) })
  const hello = { from: idOf('b'), to: idOf('a'), run: idOf('1'), heard: true, known: false }
  const take = (more: object): unknown => talk.take({ hello: { ...hello, ...more }, source: '10.0.0.2', family: 'IPv4' })
  for (const more of [{ run: idOf('2') }, { to: idOf('c') }, { from: idOf('a') }]) {
    expect(take(more)).toBeUndefined()
    expect(talk.unheard).toHaveLength(1)
  }
  // of a node that this one does not ask: it is answered all the same
  expect(take({ from: idOf('x') })).toMatchObject({ address: '10.0.0.2' })
  expect(take({ known: true })).toBeUndefined()
  expect(talk.isDone).toBe(true)
})

test('no packet of a tunnel is taken for one of these, and these have no network number', () => {
  const bytes = encodeHello({ from: idOf('a'), to: idOf('b'), run: idOf('1'), heard: false, known: false })
  expect(bytes.subarray(0, 8)).toEqual(Buffer.alloc(8))
  const packet = delivered('a', { bytes, family: 'IPv4', address: '' })
  expect(decodePacket(packet)).toBeDefined()
  for (let length = 0; length < 24 + 8 + bytes.length; length++) expect(decodePacket(packet.subarray(0, length))).toBeUndefined()
  const other = Buffer.from(packet)
  other.write('NPPX', 24 + 8 + 8)
  expect(decodePacket(other)).toBeUndefined()
})

test('sockets at the port, by what the kernel lists of them', () => {
  const table = `   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode ref pointer drops
  215: 0100007F:12B5 00000000:0000 07 00000000:00000000 00:00000000 00000000  1000        0 31337 2 0000000000000000 0
  216: 0100007F:0035 00000000:0000 07 00000000:00000000 00:00000000 00000000   101        0 12001 2 0000000000000000 0
`
  expect(socketsAt(4789, table)).toEqual([{ uid: 1000, inode: 31337 }])
  expect(socketsAt(53, table)).toEqual([{ uid: 101, inode: 12001 }])
})
