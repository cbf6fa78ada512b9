// SPDX-License-Identifier: Apache-2.0
/** What answers in pods: an echo server on the ports that a pod's containers declare. Layer: lab. */
import { existsSync, readFileSync } from 'node:fs'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { daemonPid, daemonPidIn, ensureDaemon, logTail } from './daemon.ts'
import { LabError } from '../errors.ts'
import type { Entry } from './launch.ts'
import { serverLog, toolCommand } from '../paths.ts'
import { requireHolder, serverCgroup } from './place-holders.ts'
import type { LabPod, Topology } from '../network/topology.ts'
import { waitFor } from '../wait.ts'

/** Starts those that do not run, and waits until each listens. */
export async function ensureServers(topology: Topology): Promise<void> {
  const pods = topology.pods.filter((pod) => pod.ports.length > 0)
  await mapLimited(pods, 2, (pod) => ensureServer(topology, pod))
}

/** Process id of the pod's server, once it listens in the namespace that the pod has now. */
export function listeningServer(lab: string, pod: LabPod): number | undefined {
  const pid = daemonPidIn({ cgroup: serverCgroup(lab, pod), netns: pod.netns })
  return pid !== undefined && saysListening(serverLog(lab, pod.key)) ? pid : undefined
}

/** Throws LabError with the end of its log when it does not listen within 20 s. */
async function ensureServer(topology: Topology, pod: LabPod): Promise<void> {
  const { lab } = topology
  const log = serverLog(lab, pod.key)
  const entry: Entry = { cgroup: serverCgroup(lab, pod), netns: pod.netns, holder: requireHolder(lab, pod.node) }
  const listen = pod.ports.flatMap((port) => ['--listen', `${port.protocol.toLowerCase()}:${port.port}`])
  const addresses = pod.addresses.flatMap((address) => ['--address', address])
  await ensureDaemon({
    subject: `server of pod ${pod.key}`,
    entry,
    command: [...toolCommand('echo'), '--name', pod.key.split('/')[1] ?? pod.key, ...listen, ...addresses],
    log,
    ownLog: true,
  })
  const listening = (): boolean | undefined => {
    if (listeningServer(lab, pod) !== undefined) return true
    return daemonPid(entry.cgroup) === undefined ? false : undefined
  }
  if ((await waitFor(listening, { timeoutMs: 20_000 })) !== true)
    throw new LabError(`server of pod ${pod.key}`, `does not listen: ${logTail(log, 10)}`)
}

function saysListening(log: string): boolean {
  return existsSync(log) && readFileSync(log, 'utf8').includes('listening\n')
}
