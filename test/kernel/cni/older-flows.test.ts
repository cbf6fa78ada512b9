// SPDX-License-Identifier: Apache-2.0
/** Connections of pods of an older version, under its chains, while this one begins: masqueraded by it, and between
 * pods. Layer: test. */
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { workloadInterface } from '#lib/model/pod.ts'
import { felix, node, pod } from '../agent/manifests.ts'
import { oldRules } from '../../support/old-rules.ts'
import { ChainedNode, NODE, OUTSIDE } from './chained-node.ts'

const PODS = { one: '10.3.0.11', two: '10.3.0.12' } as const
const ECHO_PORT = 9000
/** Later than anything that is put off. */
const REST_MS = 3000

/** Sends a byte each 20 ms over one connection, and says at the end how many it has sent, and got back. */
const STREAM = `
const socket = require('net').connect(Number(process.argv[2]), process.argv[1])
const counts = { sent: 0, received: 0, broken: '' }
socket.on('data', (data) => (counts.received += data.length)).on('error', (error) => (counts.broken = error.code))
const timer = setInterval(() => { socket.write('x'); counts.sent++ }, 20)
socket.once('data', () => console.log('open'))
process.on('SIGTERM', () => { clearInterval(timer); setTimeout(() => { console.log(JSON.stringify(counts)); process.exit() }, 1000) })`
/** kube-proxy's, where FORWARD drops what no rule lets in. */
const PROXY = `*filter
:FORWARD DROP [0:0]
:KUBE-FORWARD - [0:0]
-A FORWARD -j KUBE-FORWARD
-A KUBE-FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
COMMIT`
const ECHO = `require('net').createServer((socket) => socket.pipe(socket).on('error', () => 0)).listen(${ECHO_PORT}, '0.0.0.0')`

const KUBE_PROXY = {
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'kube-system', name: 'kube-proxy', labels: { 'k8s-app': 'kube-proxy' } } },
  spec: { nodeName: 'n1', hostNetwork: true, containers: [{ name: 'c', image: 'i' }] },
  status: { phase: 'Running', podIPs: [{ ip: NODE.v4 }] },
}

let of: ChainedNode
beforeEach(async () => {
  of = await ChainedNode.make()
  const ifaces = Object.keys(PODS).map((name) => workloadInterface({ namespace: 'default', name }))
  for (const [at, [name, address]] of Object.entries(PODS).entries())
    of.machine.sh(`
      ip netns add ${name}
      ip link add ${ifaces[at] ?? ''} address ee:ee:ee:ee:ee:ee type veth peer name eth0 netns ${name}
      ip link set ${ifaces[at] ?? ''} up
      sysctl -qw net.ipv4.conf.${ifaces[at] ?? ''}.proxy_arp=1
      ip route add ${address} dev ${ifaces[at] ?? ''} scope link
      ip -n ${name} link set lo up
      ip -n ${name} link set eth0 up
      ip -n ${name} addr add ${address}/32 dev eth0
      ip -n ${name} route add 169.254.1.1 dev eth0 scope link
      ip -n ${name} route add default via 169.254.1.1 dev eth0`)
  const rules = oldRules({ ifaces, deniedPort: 1, pods: '10.3.0.0/16' })
  of.machine.sh(`iptables-nft-restore --noflush <<'RULES'\n${rules}\nRULES\n`)
  of.machine.sh('ip netns exec outside iptables-nft -A INPUT -s 10.0.0.0/8 -j DROP')
  const pool = {
    apiVersion: 'netplane.io/v3',
    kind: 'IPPool',
    metadata: { name: 'pods' },
    spec: { cidr: '10.3.0.0/16', natOutgoing: true },
  }
  of.machine.put('nodes.json', [node('n1', NODE.v4, '10.3.0.0/24')])
  of.machine.put('felix.json', [felix(of.machine.cgroup)])
  of.machine.put('pods.json', [pool, ...Object.entries(PODS).map(([name, address]) => pod(name, address))])
})

afterEach(async () => {
  await of[Symbol.asyncDispose]()
})

/** Ends with what it has counted. */
async function stream(from: string, address: string): Promise<() => Promise<Readonly<Record<string, unknown>>>> {
  const child = of.machine.spawn(['ip', 'netns', 'exec', from, process.execPath, '-e', STREAM, address, String(ECHO_PORT)])
  if (child.stdout === null) throw new Error('no output')
  const lines = createInterface({ input: child.stdout })
  await once(lines, 'line')
  return async () => {
    const last = once(lines, 'line')
    child.kill('SIGTERM')
    const [line] = (await last) as readonly string[]
    return JSON.parse(line ?? '{}') as Readonly<Record<string, unknown>>
  }
}

test.each(['BPF', 'Standard'])(
  'to %s mode: none loses a byte as the chains go, and new ones are masqueraded by us',
  async (mode) => {
    if (mode === 'Standard') {
      of.machine.put('felix.json', [felix(of.machine.cgroup, { bpfEnabled: false })])
      of.machine.put('proxy.json', [KUBE_PROXY])
      of.machine.sh(`iptables-nft-restore --noflush <<'RULES'\n${PROXY}\nRULES\n`)
    }
    const servers = ['outside', 'two'].map((place) => of.machine.spawn(['ip', 'netns', 'exec', place, process.execPath, '-e', ECHO]))
    of.machine.sh(`for try in $(seq 50); do ip netns exec two ss -Hltn | grep -q :${ECHO_PORT} && exit; sleep 0.1; done; exit 1`)
    const streams = [await stream('one', OUTSIDE.v4), await stream('one', PODS.two)]
    const agent = of.machine.agent()
    await agent.event('leftovers.removed')
    expect(agent.events('leftovers.detected')).toHaveLength(1)
    expect(of.machine.sh('iptables-nft-save | grep -c "npl-" || true').trim()).toBe('0')
    await new Promise((resolve) => setTimeout(resolve, REST_MS))
    const fresh = [await stream('one', OUTSIDE.v4), await stream('one', PODS.two)]
    for (const end of [...streams, ...fresh]) {
      const counts = await end()
      expect(counts).toEqual({ sent: counts['received'], received: counts['sent'], broken: '' })
    }
    for (const server of servers) server.kill('SIGKILL')
  },
  120_000,
)
