// SPDX-License-Identifier: Apache-2.0
/** What failsafe ports let past rules of the host that deny everything: requests to them, answers of them,
 * connections older than the rules. Layer: test. */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ifindexOf, type BpfProgram } from '#native'
import { ADDR_SELF, FAILSAFE_IN, FAILSAFE_OUT, FAILSAFE_PORTS, FAILSAFE_V6, HOST_REAL } from '#lib/base/bpf-constants.ts'
import { ANY_V4, ANY_V6, parseAddr } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { HostSets } from '#agent/maps/shapes.ts'
import { addrInfo } from '../../../testkit/packets/addr-info.ts'
import { loadObject, program, sharedMaps, TestMap, type Loaded } from '../../../testkit/packets/objects.ts'
import { tcp, udp, type TcpOptions } from '../../../testkit/packets/packet.ts'
import { connection } from '../connection.ts'
import { kernelFacts } from '../kernel-facts.ts'
import { CLOSED, NO_RULES } from './host-sets.ts'
import { setUpNamespace, testCfg } from '../../../testkit/packets/runner.ts'
import { at, families, type Family } from '../../../testkit/packets/cluster.ts'

/** of the node, and of others for the node */
const [OWN, OTHERS, OTHERS_TOO] = [22, 6443, 2379]
const CLOSED_PORT = 8080
const DROP = { tc: 2, xdp: 1 }
/** an address of the machine that no program knows: it plays the other end of real connections */
const PEER = { IPv4: '192.168.50.77', IPv6: 'fd00:50::77' }

type Through = 'from_host' | 'to_host' | 'untracked'
const programs = new Map<Through, BpfProgram>()
const opened: Loaded[] = []
const maps: { hosts?: TestMap<{ ifindex: number; view: number }, HostSets>; clear: () => Promise<void> } = {
  clear: () => Promise.resolve(),
}

beforeAll(async () => {
  setUpNamespace()
  for (const [name, bits] of [
    ['IPv4', 32],
    ['IPv6', 128],
  ] as const)
    execFileSync('ip', ['addr', 'replace', `${PEER[name]}/${bits}`, 'dev', 'lo', ...(bits === 128 ? ['nodad'] : [])])
  const facts = kernelFacts()
  const options = { cfg: testCfg(facts.features), stubHelpers: facts.missingHelpers }
  const loaded = await loadObject('tc', options)
  const share = sharedMaps(loaded.object)
  const xdp = await loadObject('xdp', { ...options, share })
  opened.push(loaded, xdp)
  for (const name of ['from_host', 'to_host'] as const) programs.set(name, program(loaded, name))
  programs.set('untracked', program(xdp, 'untracked'))
  const addrs = new TestMap(loaded, catalogue.np_addrs)
  for (const f of families) addrs.set(parseAddr(f.node), addrInfo(ADDR_SELF))
  fillFailsafes(loaded)
  const ct = new TestMap(loaded, catalogue.np_ct)
  maps.hosts = new TestMap(loaded, catalogue.np_hosts)
  maps.clear = () => ct.clear()
  new TestMap(loaded, catalogue.np_untracked).set(ifindexOf('lo'), CLOSED)
})

afterAll(() => {
  for (const { object } of opened) object.close()
})

function fillFailsafes(loaded: Loaded): void {
  const failsafes = new TestMap(loaded, catalogue.np_failsafes)
  const spared = new TestMap(loaded, catalogue.np_spared)
  for (const [way, ports] of [
    [FAILSAFE_IN, [OWN]],
    [FAILSAFE_OUT, [OTHERS, OTHERS_TOO]],
  ] as const)
    for (const port of ports) {
      spared.set(way * FAILSAFE_PORTS + (port % FAILSAFE_PORTS), 1)
      for (const proto of [6, 17])
        for (const [addr, v6] of [
          [ANY_V4, 0],
          [ANY_V6, FAILSAFE_V6],
        ] as const)
          failsafes.set({ prefix: v6 === 0 ? 32 + 96 : 32, direction: way | v6, proto, port, addr }, 0)
    }
}

/** Test runs happen on the loopback device. */
function closed(sets: Partial<HostSets>): void {
  maps.hosts?.set({ ifindex: ifindexOf('lo'), view: HOST_REAL }, { ...NO_RULES, ...sets })
}

async function passes(through: Through, packet: Uint8Array): Promise<boolean> {
  await maps.clear()
  const run = programs.get(through)
  if (run === undefined) throw new Error(`no program ${through}`)
  return run.testRun({ data: packet }).retval !== DROP[through === 'untracked' ? 'xdp' : 'tc']
}

/** Whether a segment with these flags can be an answer, as the end that asks sees it. */
const SEGMENTS: readonly (readonly [flags: string, answers: boolean])[] = [
  ['S', false],
  ['SF', false],
  ['SR', false],
  ['SFP', false],
  ['', false],
  ['F', false],
  ['P', false],
  ['SA', true],
  ['A', true],
  ['PA', true],
  ['FA', true],
  ['R', true],
  ['RA', true],
]

describe.each(families.map((f) => [f.name, f] as const))('%s: rules without tracking that deny everything', (_name, f) => {
  beforeAll(() => closed({ untracked_ingress: CLOSED, untracked_egress: CLOSED }))
  const flagged = (flags: string): TcpOptions => ({ flags, payload: flags === 'S' ? 'data of a fast open' : '' })

  test.each(SEGMENTS)('a segment with flags "%s" from a failsafe port of others passes: %s', async (flags, answers) => {
    const packet = tcp(at(f.client, OTHERS), at(f.node, CLOSED_PORT), flagged(flags))
    expect([await passes('untracked', packet), await passes('from_host', packet)]).toEqual([answers, answers])
  })

  test.each(SEGMENTS)('a segment with flags "%s" from a failsafe port of the node passes: %s', async (flags, answers) => {
    expect(await passes('to_host', tcp(at(f.node, OWN), at(f.client, CLOSED_PORT), flagged(flags)))).toBe(answers)
  })

  test('a SYN behind extra headers or in fragments is no answer either', async () => {
    const [from, to] = [at(f.client, OTHERS), at(f.node, CLOSED_PORT)]
    const more = f.v4 ? { options: Uint8Array.from([1, 1, 1, 1]) } : { extensions: 1 }
    expect(await passes('from_host', tcp(from, to, { flags: 'S', ...more }))).toBe(false)
    expect(await passes('from_host', tcp(from, to, { flags: 'SA', ...more }))).toBe(true)
    expect(await passes('from_host', tcp(from, to, { flags: 'S', fragment: { offset: 0, more: true }, payload: 'x'.repeat(12) }))).toBe(
      false,
    )
    expect(await passes('from_host', tcp(from, to, { flags: 'A', fragment: { offset: 0, more: true }, payload: 'x'.repeat(12) }))).toBe(
      true,
    )
  })

  test('requests to failsafe ports pass, and datagrams of such ports: no datagram tells which it is', async () => {
    expect(await passes('untracked', tcp(at(f.client, 40_000), at(f.node, OWN), { flags: 'S' }))).toBe(true)
    expect(await passes('from_host', tcp(at(f.client, 40_000), at(f.node, OWN), { flags: 'S' }))).toBe(true)
    expect(await passes('to_host', tcp(at(f.node, 40_000), at(f.client, OTHERS), { flags: 'S' }))).toBe(true)
    for (const through of ['untracked', 'from_host'] as const) {
      expect(await passes(through, udp(at(f.client, OTHERS), at(f.node, CLOSED_PORT)))).toBe(true)
      expect(await passes(through, udp(at(f.client, OTHERS + 1), at(f.node, CLOSED_PORT)))).toBe(false)
    }
  })
})

function ownPort(client: Socket): number {
  const address = client.address()
  return isObject(address) ? Number(address['port']) : 0
}

describe.each(families.map((f) => [f.name, f] as const))('%s: rules of the node that deny everything', (_name, f: Family) => {
  beforeAll(() => closed({ normal_ingress: CLOSED, normal_egress: CLOSED }))
  const peer = PEER[f.name]

  test.each(SEGMENTS)('a segment with flags "%s" from a failsafe port opens no way to a port of the node', async (flags) => {
    expect(await passes('from_host', tcp(at(f.client, OTHERS), at(f.node, CLOSED_PORT), { flags }))).toBe(false)
  })

  test('the node has opened a connection to a failsafe port before there were rules: its server may speak first', async () => {
    using old = await connection({ addr: f.node }, peer, OTHERS)
    const [server, own] = [at(peer, OTHERS), at(f.node, ownPort(old.client))]
    expect(await passes('from_host', tcp(server, own, { flags: 'PA', payload: 'x' }))).toBe(true)
    expect(await passes('from_host', tcp(server, own, { flags: 'RA' }))).toBe(true)
    expect(await passes('from_host', tcp(server, own, { flags: 'S' }))).toBe(false)
    expect(await passes('from_host', tcp(server, at(f.node, ownPort(old.client) - 1), { flags: 'PA' }))).toBe(false)
    expect(await passes('from_host', tcp(at(peer, OTHERS_TOO), own, { flags: 'PA' }))).toBe(false)
  })

  test('another has opened a connection from such a port to a port of the node that is closed now: it is cut', async () => {
    using old = await connection({ addr: peer, port: OTHERS_TOO }, f.node, CLOSED_PORT)
    expect(old.server.listening).toBe(true)
    expect(await passes('from_host', tcp(at(peer, OTHERS_TOO), at(f.node, CLOSED_PORT), { flags: 'PA', payload: 'x' }))).toBe(false)
  })

  test('a server of the node that listens only lets nothing in', async () => {
    const server = createServer().listen(CLOSED_PORT, f.v4 ? '0.0.0.0' : '::')
    await once(server, 'listening')
    expect(await passes('from_host', tcp(at(peer, OTHERS), at(f.node, CLOSED_PORT), { flags: 'A' }))).toBe(false)
    server.close()
  })

  test('a failsafe port of the node goes on with a connection that is older than the rules', async () => {
    using old = await connection({ addr: peer, port: 40_001 }, f.node, OWN)
    expect(old.server.listening).toBe(true)
    expect(await passes('to_host', tcp(at(f.node, OWN), at(peer, 40_001), { flags: 'PA', payload: 'x' }))).toBe(true)
    expect(await passes('to_host', tcp(at(f.node, OWN), at(peer, 40_002), { flags: 'PA', payload: 'x' }))).toBe(false)
    expect(await passes('to_host', tcp(at(f.node, OWN), at(peer, 40_001), { flags: 'S' }))).toBe(false)
  })
})

describe.each(families.map((f) => [f.name, f] as const))('%s: rules of the node that deny what comes in alone', (_name, f: Family) => {
  beforeAll(() => closed({ normal_ingress: CLOSED }))
  const peer = PEER[f.name]
  const answers = (from: number, to: number, flags = 'PA'): Uint8Array => tcp(at(f.node, from), at(peer, to), { flags, payload: 'x' })

  test('another has opened a connection to the node before there were rules: that the node speaks first does not keep it', async () => {
    using old = await connection({ addr: peer, port: 40_003 }, f.node, CLOSED_PORT)
    expect(old.server.listening).toBe(true)
    expect(await passes('to_host', answers(CLOSED_PORT, 40_003))).toBe(false)
    expect(await passes('to_host', answers(CLOSED_PORT, 40_003, 'FA'))).toBe(false)
  })

  test('to a failsafe port of the node, or opened by the node itself, it goes on', async () => {
    using served = await connection({ addr: peer, port: 40_004 }, f.node, OWN)
    using asked = await connection({ addr: f.node, port: 40_005 }, peer, CLOSED_PORT)
    expect([served.server.listening, asked.server.listening]).toEqual([true, true])
    expect(await passes('to_host', answers(OWN, 40_004))).toBe(true)
    expect(await passes('to_host', answers(40_005, CLOSED_PORT))).toBe(true)
  })
})
