// SPDX-License-Identifier: Apache-2.0
/** The flow table under a whole agent: what has expired goes, and a full table becomes larger without losing a flow.
 * Layer: test. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BpfMap, monotonicNs } from '#native'
import { flowEntry, PROTO, STATE } from '../../support/flow-entries.ts'
import type { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { until } from '../../../testkit/base/until.ts'
import { links, makeNode, PINS, POD_A } from './node.ts'

/** of the flow table, as the test's manifests say */
const ROOM = 4096
/** the sweep begins some ten seconds after the start, and passes follow each other so */
const SWEEP_MS = 30_000

let machine: ScratchNode

beforeEach(async () => {
  machine = await makeNode()
})

afterEach(async () => {
  machine.sh(`[ ! -e ${machine.folder}/pod ] || kill $(cat ${machine.folder}/pod)`)
  await machine[Symbol.asyncDispose]()
})

function table(): BpfMap {
  return BpfMap.openPin(machine.path(`${PINS}/maps/np_ct`))
}

/** Gives the pod a network of its own and lets it ping its node 500 times a second; returns how to stop that and get
 * the summary. */
function ping(): () => string {
  machine.sh(`
    unshare --net sleep 120 >/dev/null 2>&1 & pod=$!
    echo $pod > ${machine.folder}/pod
    until [ "$(readlink /proc/$pod/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do :; done
    ip link set ${POD_A.replace('npl', 'p')} netns $pod name eth0
    in_pod="nsenter --target $pod --net"
    $in_pod ip addr add 10.1.1.5/32 dev eth0
    $in_pod ip link set eth0 up
    $in_pod ip route add 169.254.1.1 dev eth0
    $in_pod ip route add default via 169.254.1.1
    ip route add 10.1.1.5 dev ${POD_A}
    $in_pod ping -c 3 -i 0.05 192.0.2.1 >/dev/null
    $in_pod ping -n -q -i 0.002 192.0.2.1 >${machine.folder}/ping 2>&1 & echo $! > ${machine.folder}/pinger`)
  return () =>
    machine.sh(
      `kill -INT $(cat ${machine.folder}/pinger); tail --pid=$(cat ${machine.folder}/pinger) -f /dev/null; cat ${machine.folder}/ping`,
    )
}

function put(map: BpfMap, number: number, seen = monotonicNs() / 1e6): void {
  const { key, value } = flowEntry({ number, seen })
  map.update(key, value)
}

function has(map: BpfMap, number: number): boolean {
  return map.lookup(flowEntry({ number, seen: 0 }).key) !== undefined
}

test('what has expired is taken out, and live flows stay', { timeout: 60_000 }, async () => {
  await machine.agent('--metrics-port', '9091').event('dataplane.ready')
  const now = monotonicNs() / 1e6
  const map = table()
  // a machine may have been up for less than an hour
  const dead = { number: 7, proto: PROTO.udp, state: STATE.seenLo, seen: Math.max(0, now - 3_600_000) }
  const { key, value } = flowEntry(dead)
  map.update(key, value)
  put(map, 1)
  await until('the sweep', () => map.lookup(key) === undefined, SWEEP_MS)
  expect(has(map, 1)).toBe(true)
  map.close()
  const page = `fetch("http://127.0.0.1:9091/metrics").then((answer) => answer.text().then((text) => console.log(text)))`
  await expect
    .poll(() => machine.sh(`${process.execPath} -e '${page}'`))
    .toMatch(/^netplane_flows\{proto="tcp",state="open",translated="false"\} 1$/m)
})

test(
  'a table full of live flows is doubled while programs write to it; no flow is lost, nor the size by a restart',
  { timeout: 90_000 },
  async () => {
    const agent = machine.agent()
    await agent.event('dataplane.ready')
    const hooks = Object.keys(links(machine)).sort()
    const stop = ping()
    const old = table()
    let flows = 0
    const full = Math.ceil(0.93 * ROOM)
    for (; flows < full; flows++) put(old, flows)
    // as programs do that have not been switched yet: new flows, and packets of known ones
    const write = (): void => {
      if (flows < full + 100) put(old, flows++)
      put(old, flows - 50)
    }
    await until('growth', () => (write(), agent.events('programs.ready').length > 1), SWEEP_MS)
    await agent.event('programs.retired')
    const [, sent, answered] = /^(\d+) packets transmitted, (\d+) received/m.exec(stop()) ?? []
    expect(Number(sent)).toBeGreaterThan(1000)
    // the last may have been on its way
    expect(Number(sent) - Number(answered)).toBeLessThanOrEqual(1)
    const grown = table()
    expect([grown.info().maxEntries, Object.keys(links(machine)).sort()]).toEqual([2 * ROOM, hooks])
    expect(Array.from({ length: flows }, (_, number) => number).filter((number) => !has(grown, number))).toEqual([])
    const { id } = grown.info()
    for (const map of [old, grown]) map.close()
    await agent.kill()
    const second = machine.agent()
    expect(await second.event('dataplane.adopted')).toMatchObject({ adopted: { programs: true }, written: {} })
    const after = table()
    expect(after.info()).toMatchObject({ id, maxEntries: 2 * ROOM })
    after.close()
  },
)
