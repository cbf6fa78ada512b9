// SPDX-License-Identifier: Apache-2.0
/** Flows of one node, by windows. Layer: test. */
import { beforeEach, expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import type { FlowWindow } from '#lib/flows/flow.ts'
import { FlowBook, type SeenFlow } from '#agent/flows/book.ts'
import { Ends } from '#agent/flows/ends.ts'
import { MeantServices } from '#agent/flows/meant.ts'
import { Tracer } from '#agent/flows/trace.ts'
import type { FlowEvent } from '#agent/maps/shapes.ts'
import { kubernetesPolicy, node, pod, service, snapshotOf, v3, type Manifest } from '../../support/build.ts'

const [CLIENT, OTHER, SERVER, OUTSIDE, FAR, VIP] = ['10.1.0.1', '10.1.0.2', '10.1.0.3', '192.0.2.9', '10.2.0.1', '10.96.0.1']
/** by number, as programs record them */
const RULES: Readonly<Record<number, string>> = {
  1: 'KubernetesNetworkPolicy/shop/db ingress 0',
  2: 'Tier/default ingress end',
  3: 'NetworkPolicy/shop/first egress 1',
  4: 'Tier/default egress end',
}
const WORLD: readonly Manifest[] = [
  node('n1', { addresses: ['192.0.2.1'] }),
  node('n2', { addresses: ['192.0.2.2'] }),
  grouped('web-6d4b-x', { node: 'n1', ips: [CLIENT], labels: { app: 'web', 'pod-template-hash': '6d4b', track: 'a' } }),
  grouped('web-6d4b-y', { node: 'n1', ips: [OTHER], labels: { app: 'web', 'pod-template-hash': '6d4b', track: 'b' } }),
  pod('shop/db-0', { node: 'n1', ips: [SERVER], labels: { app: 'db' } }),
  pod('shop/far', { node: 'n2', ips: [FAR] }),
  service('shop/db', { clusterIPs: [VIP], ports: [{ name: 'sql', port: 5432 }] }),
  kubernetesPolicy('shop/db', { podSelector: { matchLabels: { app: 'db' } }, ingress: [{ ports: [{ port: 5432 }] }] }),
  v3('GlobalNetworkSet', 'partners', { nets: ['192.0.2.0/24'] }),
]

let book: FlowBook

beforeEach(() => {
  book = newBook()
})

function newBook(): FlowBook {
  const world = snapshotOf(WORLD)
  const [ends, meant] = [new Ends('n1'), new MeantServices()]
  ends.note(world, undefined)
  meant.note(world, undefined)
  return new FlowBook({
    ...{ ends, meant },
    tracer: () => new Tracer(world, ends),
    ruleName: (number) => RULES[number],
    reasonName: (number) => `reason_${number}`,
  })
}

function grouped(name: string, of: Parameters<typeof pod>[1]): Manifest {
  const made = pod(`shop/${name}`, of)
  const metadata = {
    ...(made['metadata'] as object),
    generateName: 'web-6d4b-',
    ownerReferences: [{ kind: 'ReplicaSet', name: 'web-6d4b' }],
  }
  return { ...made, metadata }
}

interface Ways {
  readonly from: string
  readonly sport?: number
  readonly to: string
  readonly port?: number
  /** before translation */
  readonly meant?: string
  readonly proto?: number
}

function ends({ from, sport = 40_000, to, port = 5432, meant, proto = 6 }: Ways) {
  const flow = { src: parseAddr(from), sport, dst: parseAddr(to), dport: port }
  return { flow, sent: meant === undefined ? flow : { ...flow, dst: parseAddr(meant) }, proto }
}

const NO_RULES = { egress_rule: 0, ingress_rule: 0, staged_egress_rule: 0, staged_ingress_rule: 0 }

function event(kind: number, ways: Ways, of: Partial<FlowEvent> = {}): FlowEvent {
  return { at: 0n, kind, device: 1, length: 60, reason: 0, hook: 1, tunnelled: 0, lane: 0, ...NO_RULES, ...ends(ways), ...of } as FlowEvent
}

const [OPENED, DENIED, ENDED, DROPPED, MEANT] = [1, 2, 3, 4, 5]
/** the database's own rule lets it in */
const ALLOWED = { ingress_rule: 1, staged_ingress_rule: 1 }

function seen(ways: Ways, of: Partial<SeenFlow> = {}): SeenFlow {
  const none = { packets: 0, bytes: 0 }
  return { ...ends(ways), lane: 0, forward: none, back: none, closed: false, expired: false, ...NO_RULES, ...ALLOWED, ...of }
}

function look(...flows: readonly SeenFlow[]): void {
  book.beginLook()
  for (const one of flows) book.see(one)
  book.endLook()
}

/** The window that ends then, as "Src web-6d4b-* > db-0: 1 live, …". */
function turn(seconds: number): readonly string[] {
  return (book.turn(seconds) ?? []).map(text).sort()
}

function text({ key, counts: { packetsIn, packetsOut, bytesIn, bytesOut, started, completed, live } }: FlowWindow): string {
  const ways = `${key.reporter} ${key.action} ${key.source.name} > ${key.dest.name}`
  return `${ways}: ${started}+ ${completed}- ${live} live, in ${packetsIn}/${bytesIn}, out ${packetsOut}/${bytesOut}`
}

const LOCAL: Ways = { from: CLIENT, to: SERVER, meant: VIP }

test('a connection between two pods of this node is told by both ends, each with the packets as it sees them', () => {
  book.take(event(OPENED, LOCAL, ALLOWED))
  expect(book.news(100).map(text)).toEqual([
    'Src Allow web-6d4b-* > db-0: 1+ 0- 1 live, in 0/0, out 0/0',
    'Dst Allow web-6d4b-* > db-0: 1+ 0- 1 live, in 0/0, out 0/0',
  ])
  look(seen(LOCAL, { forward: { packets: 3, bytes: 180 }, back: { packets: 2, bytes: 2000 } }))
  expect(turn(105)).toEqual([
    'Dst Allow web-6d4b-* > db-0: 1+ 0- 1 live, in 3/180, out 2/2000',
    'Src Allow web-6d4b-* > db-0: 1+ 0- 1 live, in 2/2000, out 3/180',
  ])
})

test('a window names its service, its labels, addresses, pods, owner and rules', () => {
  book.take(event(OPENED, LOCAL, ALLOWED))
  book.take(event(OPENED, { ...LOCAL, from: OTHER, sport: 40_001 }, ALLOWED))
  const [, incoming] = book.turn(105) ?? [] // the first call opens the window
  expect(incoming).toBeUndefined()
  const told = (book.turn(120) ?? []).find(({ key }) => key.reporter === 'Dst')
  expect(told).toMatchObject({
    start: 105,
    key: {
      source: { type: 'WorkloadEndpoint', namespace: 'shop', name: 'web-6d4b-*' },
      dest: { type: 'WorkloadEndpoint', namespace: 'shop', name: 'db-0' },
      ...{ destPort: 5432, protocol: 'tcp', reason: '' },
      service: { namespace: 'shop', name: 'db', portName: 'sql', port: 5432 },
      enforced: [{ kind: 'NetworkPolicy', tier: 'default', namespace: 'shop', name: 'db', action: 'Allow', rule: 0 }],
    },
    source: {
      labels: ['app=web', 'pod-template-hash=6d4b'],
      addresses: [CLIENT, OTHER],
      pods: ['web-6d4b-x', 'web-6d4b-y'],
      ...{ node: 'n1', owner: 'Deployment/web' },
    },
    sourcePorts: [40_000, 40_001],
  })
})

test('a connection is live in each window until it ends, and what it has sent since is told once', () => {
  book.news(100)
  book.take(event(OPENED, LOCAL, ALLOWED))
  look(seen(LOCAL, { forward: { packets: 1, bytes: 60 } }))
  expect(turn(105)).toContain('Dst Allow web-6d4b-* > db-0: 1+ 0- 1 live, in 1/60, out 0/0')
  look(seen(LOCAL, { forward: { packets: 1, bytes: 60 } }))
  expect(turn(120)).toContain('Dst Allow web-6d4b-* > db-0: 0+ 0- 1 live, in 0/0, out 0/0')
  book.take(event(ENDED, LOCAL))
  look(seen(LOCAL, { forward: { packets: 4, bytes: 240 }, closed: true }))
  expect(turn(135)).toContain('Dst Allow web-6d4b-* > db-0: 0+ 1- 1 live, in 3/180, out 0/0')
  look(seen(LOCAL, { forward: { packets: 4, bytes: 240 }, closed: true }))
  expect(turn(150)).toEqual([])
  expect(book.size).toEqual({ connections: 0, keys: 0 })
})

test('a flow that the table has no more has ended', () => {
  book.news(100)
  book.take(event(OPENED, LOCAL, ALLOWED))
  look(seen(LOCAL))
  look()
  expect(turn(105)).toContain('Dst Allow web-6d4b-* > db-0: 1+ 1- 1 live, in 0/0, out 0/0')
})

test('what was there before the first look is live and has begun before; its packets until then are not told', () => {
  book.news(100)
  look(seen(LOCAL, { forward: { packets: 100, bytes: 6000 } }))
  look(seen(LOCAL, { forward: { packets: 101, bytes: 6060 } }))
  expect(turn(105)).toContain('Dst Allow web-6d4b-* > db-0: 0+ 0- 1 live, in 1/60, out 0/0')
})

test('a flow whose event was lost is found by a look, and counts once when the event comes late', () => {
  book.news(100)
  look()
  look(seen(LOCAL, { forward: { packets: 1, bytes: 60 } }))
  book.take(event(OPENED, LOCAL, ALLOWED))
  expect(turn(105)).toContain('Dst Allow web-6d4b-* > db-0: 1+ 0- 1 live, in 1/60, out 0/0')
})

test('the two entries of a translated flow are one connection', () => {
  book.news(100)
  book.take(event(OPENED, LOCAL, ALLOWED))
  look(seen(LOCAL, { forward: { packets: 2, bytes: 120 } }), seen(LOCAL, { back: { packets: 1, bytes: 60 } }))
  look(seen(LOCAL, { forward: { packets: 3, bytes: 180 } }), seen(LOCAL, { back: { packets: 2, bytes: 160 } }))
  expect(turn(105)).toContain('Dst Allow web-6d4b-* > db-0: 1+ 0- 1 live, in 3/180, out 2/160')
})

test('after a change of rules a flow counts for the new ones, and nothing twice', () => {
  book.news(100)
  book.take(event(OPENED, LOCAL, ALLOWED))
  look(seen(LOCAL, { forward: { packets: 1, bytes: 60 } }))
  look(seen(LOCAL, { forward: { packets: 3, bytes: 180 }, ingress_rule: 0, staged_ingress_rule: 0 }))
  expect(turn(105).filter((line) => line.startsWith('Dst'))).toEqual([
    'Dst Allow web-6d4b-* > db-0: 0+ 0- 1 live, in 2/120, out 0/0',
    'Dst Allow web-6d4b-* > db-0: 1+ 0- 1 live, in 1/60, out 0/0',
  ])
  expect(turn(120)).toHaveLength(2)
})

test('an entry that begins anew counts from nothing', () => {
  book.news(100)
  book.take(event(OPENED, LOCAL, ALLOWED))
  look(seen(LOCAL, { forward: { packets: 9, bytes: 540 } }))
  book.take(event(OPENED, LOCAL, ALLOWED))
  look(seen(LOCAL, { forward: { packets: 2, bytes: 120 } }))
  expect(turn(105)).toContain('Dst Allow web-6d4b-* > db-0: 2+ 1- 2 live, in 11/660, out 0/0')
})

test('what the destination denies is told by it, and by its source as what its own rules let go', () => {
  book.news(100)
  book.take(event(DENIED, { ...LOCAL, meant: SERVER, port: 81 }, { ingress_rule: 2, staged_ingress_rule: 2 }))
  const windows = book.turn(105) ?? []
  expect(windows.map(text)).toEqual([
    'Src Allow web-6d4b-* > db-0: 0+ 0- 0 live, in 0/0, out 1/60',
    'Dst Deny web-6d4b-* > db-0: 0+ 0- 0 live, in 1/60, out 0/0',
  ])
  const trigger = { kind: 'NetworkPolicy', tier: 'default', namespace: 'shop', name: 'db' }
  expect(windows[1]?.key.enforced).toEqual([
    { kind: 'EndOfTier', tier: 'default', namespace: '', name: '', action: 'Deny', rule: -1, trigger },
  ])
  expect(windows[0]?.key.enforced).toMatchObject([{ kind: 'Profile', name: 'kns.shop', action: 'Allow' }])
  expect(book.turn(120)).toEqual([])
})

test('what the source denies is told by it alone', () => {
  book.news(100)
  book.take(event(DENIED, LOCAL, { egress_rule: 4, staged_egress_rule: 4 }))
  expect(turn(105)).toEqual(['Src Deny web-6d4b-* > db-0: 0+ 0- 0 live, in 0/0, out 1/60'])
})

test('a drop has its reason, and no rules', () => {
  book.news(100)
  const nowhere = { src: parseAddr('::'), dst: parseAddr('::'), sport: 0, dport: 0 }
  book.take(event(DROPPED, { from: CLIENT, to: FAR }, { reason: 16, flow: nowhere }))
  expect(book.turn(105)).toMatchObject([
    { key: { reporter: 'Src', action: 'Deny', reason: 'reason_16', enforced: [], dest: { name: 'far' } } },
  ])
})

test('who comes from outside is told by the set that has its address, and one of another node by that', () => {
  book.news(100)
  for (const from of [OUTSIDE, '203.0.113.7', '10.9.9.9', '192.0.2.2']) book.take(event(OPENED, { from, to: SERVER }, ALLOWED))
  expect((book.turn(105) ?? []).map(({ key }) => `${key.source.type} ${key.source.namespace}/${key.source.name}`)).toEqual([
    'NetworkSet -/partners',
    'Network -/pub',
    'Network -/pvt',
    'HostEndpoint -/n2',
  ])
})

test('a flow between others is not ours to tell', () => {
  book.take(event(OPENED, { from: OUTSIDE, to: FAR }))
  expect(book.news(100)).toEqual([])
  expect(book.size).toEqual({ connections: 0, keys: 0 })
})

test.each(['before', 'after'])('a socket that got its endpoint at connect says which service it meant, %s its first packet', (order) => {
  const direct: Ways = { from: CLIENT, to: SERVER }
  const told = [event(MEANT, LOCAL), event(OPENED, direct, ALLOWED)]
  for (const one of order === 'before' ? told : told.toReversed()) book.take(one)
  const windows = book.news(100)
  expect(windows.map(({ key, counts }) => [key.reporter, key.service?.name, counts.started, counts.live])).toEqual([
    ['Src', 'db', 1, 1],
    ['Dst', 'db', 1, 1],
  ])
  look(seen(direct, { forward: { packets: 2, bytes: 120 } }))
  expect(turn(105)).toEqual([
    'Dst Allow web-6d4b-* > db-0: 1+ 0- 1 live, in 2/120, out 0/0',
    'Src Allow web-6d4b-* > db-0: 1+ 0- 1 live, in 0/0, out 2/120',
  ])
})

test('the next agent goes on where one has ended: sums of the window, connections and what they have sent', () => {
  book.news(100)
  for (const sport of [1, 2]) book.take(event(OPENED, { ...LOCAL, sport }, ALLOWED))
  look(seen({ ...LOCAL, sport: 1 }, { forward: { packets: 1, bytes: 60 } }), seen({ ...LOCAL, sport: 2 }))
  book.take(event(ENDED, { ...LOCAL, sport: 2 }))
  const saved = JSON.parse(JSON.stringify(book.save())) as ReturnType<FlowBook['save']>
  book = newBook()
  book.restore(saved)
  book.take(event(OPENED, { ...LOCAL, sport: 3 }, ALLOWED))
  const counted = { forward: { packets: 2, bytes: 120 } }
  look(
    seen({ ...LOCAL, sport: 1 }, counted),
    seen({ ...LOCAL, sport: 2 }, { ...counted, closed: true }),
    seen({ ...LOCAL, sport: 3 }, counted),
  )
  expect(turn(105)).toEqual([
    'Dst Allow web-6d4b-* > db-0: 3+ 1- 3 live, in 6/360, out 0/0',
    'Src Allow web-6d4b-* > db-0: 3+ 1- 3 live, in 0/0, out 6/360',
  ])
  expect(turn(120)).toContain('Dst Allow web-6d4b-* > db-0: 0+ 0- 2 live, in 0/0, out 0/0')
})

test('only the first of a window is news: the rest is told when it is over', () => {
  book.take(event(OPENED, LOCAL, ALLOWED))
  expect(book.news(100)).toHaveLength(2)
  book.take(event(OPENED, { ...LOCAL, sport: 40_001 }, ALLOWED))
  expect(book.news(101)).toEqual([])
  expect(turn(105)).toContain('Dst Allow web-6d4b-* > db-0: 2+ 0- 2 live, in 0/0, out 0/0')
})

test('a node port is its service, at any address of a node', () => {
  const world = snapshotOf([
    ...WORLD,
    service('shop/out', { type: 'NodePort', clusterIPs: ['10.96.0.2'], ports: [{ port: 80, nodePort: 30080 }] }),
  ])
  const meant = new MeantServices()
  meant.note(world, undefined)
  const to = { addr: parseAddr('192.0.2.2'), port: 30080, proto: 6 }
  expect(meant.find(to, true)).toEqual({ namespace: 'shop', name: 'out', portName: '-', port: 80 })
  expect(meant.find(to, false)).toBeUndefined()
})

test('a service of many addresses and ports takes no more memory than both, and the last of two that share one is meant', () => {
  const many = Array.from({ length: 2000 }, (_, at) => at)
  const externalIPs = ['203.0.113.1', ...many.map((at) => `198.18.${at >> 8}.${at & 255}`)]
  const ports = many.map((at) => ({ name: `p${at}`, port: 1 + at }))
  const world = snapshotOf([
    service('shop/many', { ports, spec: { externalIPs } }),
    service('shop/one', { clusterIPs: ['10.96.0.2'], ports: [{ name: 'http', port: 80 }], spec: { externalIPs: ['203.0.113.1'] } }),
  ])
  const meant = new MeantServices()
  meant.note(world, undefined)
  const nameAt = (addr: string, port: number): string | undefined => meant.find({ addr: parseAddr(addr), port, proto: 6 }, false)?.portName
  const before = process.memoryUsage().heapUsed
  expect(['198.18.0.7', '203.0.113.1'].flatMap((addr) => [80, 2000, 2001].map((port) => nameAt(addr, port)))).toEqual([
    ...['p79', 'p1999', undefined],
    ...['http', 'p1999', undefined],
  ])
  // four million entries would have half a gigabyte
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(50_000_000)
})
