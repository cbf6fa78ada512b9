// SPDX-License-Identifier: Apache-2.0
/** From the real kube-proxy to Netplane on nodes at work: agents start, serve, and clean its rules up. Layer: bench. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Lab } from '../../lab/lab.ts'
import type { Load } from '../../lab/traffic/load.ts'
import type { Endpoint } from '../../lab/tools/address.ts'
import type { ProxyMode } from '../../testkit/kubernetes/kube-proxy/process.ts'
import { serveByKubeProxy } from '../path/kube-proxy.ts'
import { ADDRESSES, CLIENT_POD, ENTRY_NODE, PORT, clusterManifest, far, near } from '../path/manifests.ts'
import type { LossFigure, Losses } from './result.ts'
import { sumOf } from './sum.ts'
import { lossesUnder, rest, untilSaid } from './under.ts'

const LAB = 'benchswitch'
const REMOVED_MS = 60_000
/** about as long as the switch takes */
const BEFORE_MS = 10_000
/** after the rules are gone */
const AFTER_MS = 3000

/** From a pod, from a node and from outside; to the backend that is there and to the other node's. */
const WAYS: readonly { readonly from: string; readonly to: readonly Endpoint[] }[] = [
  { from: CLIENT_POD, to: [near, far].map((service) => tcp(service.clusterIp, PORT)) },
  { from: `node/${ENTRY_NODE}`, to: [near, far].map((service) => tcp(service.clusterIp, PORT)) },
  {
    from: 'client',
    to: [ADDRESSES.entryNode, ADDRESSES.otherNode].flatMap((node) => [near, far].map(({ nodePort }) => tcp(node, nodePort))),
  },
]

/** What is open before goes on, what is new is served: four connections by each way, ten new ones a second. */
const LOAD: Load = {
  flows: WAYS.map(({ from, to }) => ({ from, to: Array.from({ length: 4 }, () => to).flat(), rate: 100 })),
  requests: WAYS.flatMap(({ from, to }) => to.map((one) => ({ from, to: one, rate: 10 }))),
}

/** Every node of a cluster, once in each of the modes; control: the same load on kube-proxy's rules, before the
 * agents come. */
export async function switchFrom(modes: readonly ProxyMode[], programs: string): Promise<LossFigure> {
  const results = { fault: [] as Losses[], control: [] as Losses[] }
  let runs = 0
  for (const mode of modes) {
    const one = await switched(mode, programs)
    results.fault.push(one.fault)
    results.control.push(one.control)
    runs += one.nodes
  }
  return { id: 'proxy-switch', runs, fault: sumOf(results.fault), control: sumOf(results.control) }
}

async function switched(mode: ProxyMode, programs: string): Promise<Pick<LossFigure, 'fault' | 'control'> & { readonly nodes: number }> {
  const resources = mkdtempSync(join(tmpdir(), 'netplane-bench-'))
  try {
    writeFileSync(join(resources, 'cluster.json'), clusterManifest('usual'))
    await Lab.remove(LAB)
    await using lab = await Lab.up({ name: LAB, resources, plain: true })
    await serveByKubeProxy({ mode, programs })(lab)
    const control = await lossesUnder(lab, LOAD, () => rest(BEFORE_MS))
    const fault = await lossesUnder(lab, LOAD, () => start(lab))
    return { fault, control, nodes: lab.topology.nodes.length }
  } finally {
    rmSync(resources, { recursive: true })
  }
}

async function start(lab: Lab): Promise<void> {
  await lab.startAgents(true)
  await untilSaid(lab, 'kube-proxy.removed', REMOVED_MS)
  await rest(AFTER_MS)
}

function tcp(address: string, port: number): Endpoint {
  return { proto: 'tcp', address, port }
}
