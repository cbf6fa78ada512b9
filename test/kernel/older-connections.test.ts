// SPDX-License-Identifier: Apache-2.0
/** A connection that the node has opened from a port that becomes a node port later. Layer: test. */
import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ADDR_NODE_PORTS, ADDR_SELF, FRONTEND_EXTERNAL, FRONTEND_NODE_PORT, SOURCE_ANY } from '#lib/base/bpf-constants.ts'
import { ANY_V4, ANY_V6, parseAddr } from '#lib/base/ip.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { addrInfo } from '../../testkit/packets/addr-info.ts'
import { at, families, NODE_PORT, WEB } from '../../testkit/packets/cluster.ts'
import { loadObject, program, TestMap, type Loaded } from '../../testkit/packets/objects.ts'
import { tcp } from '../../testkit/packets/packet.ts'
import { setUpNamespace, testCfg } from '../../testkit/packets/runner.ts'
import { connection } from './connection.ts'
import { kernelFacts } from './kernel-facts.ts'

/** an address of the machine that no program knows: it plays the other end of real connections */
const PEER = { IPv4: '192.168.50.77', IPv6: 'fd00:50::77' }
const PORT = 7070
/** tc's verdict: to the next program, which is the kernel */
const NEXT = -1

let loaded: Loaded

beforeAll(async () => {
  setUpNamespace()
  execFileSync('ip', ['addr', 'replace', `${PEER.IPv4}/32`, 'dev', 'lo'])
  execFileSync('ip', ['addr', 'replace', `${PEER.IPv6}/128`, 'dev', 'lo', 'nodad'])
  const facts = kernelFacts()
  // the other end is here as well
  const cfg = { ...testCfg(facts.features), source_check: SOURCE_ANY }
  loaded = await loadObject('tc', { cfg, stubHelpers: facts.missingHelpers })
  const [addrs, frontends] = [new TestMap(loaded, catalogue.np_addrs), new TestMap(loaded, catalogue.np_frontends)]
  const none = { list: WEB, count: 0 }
  for (const f of families) {
    addrs.set(parseAddr(f.node), addrInfo(ADDR_SELF, { flags: ADDR_NODE_PORTS }))
    const row = { inside: none, outside: none, flags: FRONTEND_NODE_PORT | FRONTEND_EXTERNAL, affinity: 0 }
    frontends.set({ addr: f.v4 ? ANY_V4 : ANY_V6, port: NODE_PORT, proto: 6 }, row)
  }
})

afterAll(() => {
  loaded.object.close()
})

test.each(families.map((f) => [f.name, f] as const))('%s: its packets are let in, and no others', async (name, f) => {
  const peer = PEER[name]
  const comes = (from: string, flags: string): number =>
    program(loaded, 'from_host').testRun({ data: tcp(from, at(f.node, NODE_PORT), { flags }) }).retval | 0
  using old = await connection({ addr: f.node, port: NODE_PORT }, peer, PORT)
  expect(old.server.listening).toBe(true)
  expect(['PA', 'FA', 'RA'].map((flags) => comes(at(peer, PORT), flags))).toEqual([NEXT, NEXT, NEXT])
  expect(comes(at(peer, PORT + 1), 'PA')).not.toBe(NEXT)
  // a service without backends
  expect(comes(at(peer, PORT), 'S')).not.toBe(NEXT)
})
