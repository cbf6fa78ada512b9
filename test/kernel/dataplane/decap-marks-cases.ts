// SPDX-License-Identifier: Apache-2.0
/** A merged packet out of the tunnel: is it still marked as tunnelled where it goes next? The kernel's own VXLAN device
 * sends it, from a namespace that stands for the other node, to one that stands for a pod. Layer: test. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ifindexOf, tcAttach, tcCreateHook } from '#native'
import { devices, families, neighbourMac, VNI, type Family } from '../../../testkit/packets/cluster.ts'
import { fill, openMaps } from '../../../testkit/packets/case-maps.ts'
import { loadObject, program } from '../../../testkit/packets/objects.ts'
import { setUpNamespace, testCfg, type Features } from '../../../testkit/packets/runner.ts'

const OUTSIDE = 'nplm-outside'
const POD = 'nplm-pod'
/** of the pod's device here, no other test's */
const DEVICE = 'nplm0'
const PORT = 8080
const TRACING = '/sys/kernel/tracing'
/** SKB_GSO_UDP_TUNNEL and SKB_GSO_UDP_TUNNEL_CSUM */
const TUNNEL_MARKS = 0x0c00

type Check = (name: string, wrong: string | undefined) => void

function ip(lines: readonly string[], netns?: string): void {
  execFileSync('ip', [...(netns === undefined ? [] : ['-netns', netns]), '-batch', '-'], { input: `${lines.join('\n')}\n` })
}

/** The other node and the pod, each at the far end of its device. */
function setUp(f: Family): void {
  const [alone, subnet, nodad] = f.v4 ? [32, 24, ''] : [128, 64, ' nodad']
  const { underlay, pod } = devices
  setUpNamespace()
  ip([`netns add ${OUTSIDE}`, `netns add ${POD}`, `link set ${underlay.name}p netns ${OUTSIDE}`, `link set ${pod.name}p netns ${POD}`])
  ip(
    [
      `link set ${underlay.name}p address ${neighbourMac} up`,
      `addr add ${f.otherNode}/${subnet} dev ${underlay.name}p${nodad}`,
      `link add vx0 type vxlan id ${VNI} local ${f.otherNode} remote ${f.node} dstport 4789 dev ${underlay.name}p`,
      `link set vx0 mtu ${f.v4 ? 1450 : 1430} up`,
      `addr add ${f.remotePod}/${alone} dev vx0${nodad}`,
      `route add ${f.elsewherePod}/${alone} dev vx0 src ${f.remotePod}`,
      `neigh replace ${f.elsewherePod} lladdr 02:00:00:00:00:05 dev vx0`,
    ],
    OUTSIDE,
  )
  ip(
    [
      `link set ${pod.name}p address ${neighbourMac} up`,
      `addr add ${f.elsewherePod}/${alone} dev ${pod.name}p${nodad}`,
      `route add ${f.remotePod}/${alone} dev ${pod.name}p`,
      `neigh replace ${f.remotePod} lladdr ${pod.mac} dev ${pod.name}p`,
    ],
    POD,
  )
  ip([`neigh replace ${f.elsewherePod} lladdr ${neighbourMac} dev ${pod.name}`])
}

/** Runs the text in a namespace; what it prints says that it is ready, or done. Throws where it ends without a word. */
async function run(netns: string, text: string): Promise<ChildProcess> {
  const child = spawn('ip', ['netns', 'exec', netns, process.execPath, '-e', text], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [said] = (await Promise.race([once(child.stdout, 'data'), once(child.stdout, 'end')])) as readonly unknown[]
  if (said === undefined) throw new Error(`nothing was said in ${netns} by: ${text}`)
  return child
}

const SINK = `require('net').createServer((s) => s.resume()).listen(${PORT}, () => console.log('ready'))`
const sender = (to: string): string =>
  `const s = require('net').connect(${PORT}, '${to}', () => s.end(Buffer.alloc(1e6))); s.resume(); s.on('close', () => console.log('done'))`

/** gso_type of the merged packets that leave by the device meanwhile. */
async function marksOf(send: () => Promise<void>): Promise<readonly number[]> {
  // it stays: tests have mounts of their own
  if (!existsSync(join(TRACING, 'instances'))) execFileSync('mount', ['-t', 'tracefs', 'tracefs', TRACING])
  const instance = join(TRACING, 'instances', 'nplm')
  try {
    mkdirSync(instance)
    const event = join(instance, 'events/net/net_dev_start_xmit')
    writeFileSync(join(event, 'filter'), `name == "${DEVICE}" && gso_size > 0`)
    writeFileSync(join(event, 'enable'), '1')
    await send()
    writeFileSync(join(event, 'enable'), '0')
    return [...readFileSync(join(instance, 'trace'), 'utf8').matchAll(/gso_type=(0x[0-9a-f]+|0)/g)].map(([, type]) => Number(type))
  } finally {
    rmdirSync(instance)
  }
}

/** gso_type where merged packets leave, with the kernel told or not that they are out of the tunnel. */
async function marksFor(f: Family, features: Features, stubs: readonly number[]): Promise<readonly number[]> {
  setUp(f)
  // the pod's own hook is passed by, and no packet goes to the device's other end directly: it leaves by the device
  const loaded = await loadObject('tc', { cfg: testCfg({ ...features, redirectPeer: false }), stubHelpers: stubs })
  fill(openMaps(loaded), {})
  ip([`link set ${devices.pod.name} down`, `link set ${devices.pod.name} name ${DEVICE}`, `link set ${DEVICE} up`])
  ip([
    `route replace ${f.elsewherePod}/${f.v4 ? 32 : 128} dev ${DEVICE}`,
    `neigh replace ${f.elsewherePod} lladdr ${neighbourMac} dev ${DEVICE}`,
  ])
  const ifindex = ifindexOf(devices.underlay.name)
  tcCreateHook(ifindex)
  tcAttach({ ifindex, direction: 'ingress', handle: 1, priority: 1 }, program(loaded, 'from_host'))
  const children: ChildProcess[] = []
  try {
    children.push(await run(POD, SINK))
    return await marksOf(async () => {
      children.push(await run(OUTSIDE, sender(f.elsewherePod)))
    })
  } finally {
    for (const child of children) child.kill('SIGKILL')
    ip([...[devices.underlay.name, DEVICE].map((name) => `link del ${name}`), ...[OUTSIDE, POD].map((name) => `netns del ${name}`)])
    loaded.object.close()
  }
}

/** Without the flag all are marked, with it none, where the kernel has it. */
export async function decapMarksCases(features: Features, stubs: readonly number[], check: Check): Promise<void> {
  for (const f of families)
    for (const decapUdp of features.decapUdp === true ? [false, true] : [false]) {
      const marks = await marksFor(f, { ...features, decapUdp }, stubs)
      const marked = marks.filter((mark) => (mark & TUNNEL_MARKS) !== 0).length
      const right = marks.length > 0 && marked === (decapUdp ? 0 : marks.length)
      const name = `${f.name}: merged packets out of the tunnel ${decapUdp ? 'have lost' : 'keep'} its marks`
      check(name, right ? undefined : `${marked} of ${marks.length} have them`)
    }
}
