// SPDX-License-Identifier: Apache-2.0
/** What answers in pods: an echo server on the ports that a pod's containers declare. Layer: lab. */
import { readFileSync, rmSync } from 'node:fs'
import { mapLimit } from './command.ts'
import { daemonPid, ensureDaemon, logTail } from './daemon.ts'
import { LabError } from './errors.ts'
import type { Entry } from './launch.ts'
import { serverLog, toolCommand } from './paths.ts'
import { requireHolder, serverCgroup } from './places.ts'
import type { LabPod, Topology } from './topology.ts'
import { waitFor } from './wait.ts'

/** Starts those that do not run, and waits until each listens. */
export async function ensureServers(topology: Topology): Promise<void> {
  const pods = topology.pods.filter((pod) => pod.ports.length > 0)
  await mapLimit(pods, 2, (pod) => ensureServer(topology, pod))
}

/** Throws LabError with the end of its log when it does not listen within 20 s. */
async function ensureServer(topology: Topology, pod: LabPod): Promise<void> {
  const log = serverLog(topology.lab, pod.key)
  const entry: Entry = { cgroup: serverCgroup(topology.lab, pod), netns: pod.netns, holder: requireHolder(topology.lab, pod.node) }
  const listen = pod.ports.flatMap((port) => ['--listen', `${port.protocol.toLowerCase()}:${port.port}`])
  // its log says whether the one that runs listens: it must not tell of another
  if (daemonPid(entry.cgroup) === undefined) rmSync(log, { force: true })
  await ensureDaemon({
    subject: `server of pod ${pod.key}`,
    entry,
    command: [...toolCommand('echo'), '--name', pod.key.split('/')[1] ?? pod.key, ...listen],
    log,
  })
  const listening = (): boolean | undefined => {
    if (readFileSync(log, 'utf8').includes('listening\n')) return true
    return daemonPid(entry.cgroup) === undefined ? false : undefined
  }
  if ((await waitFor(listening, { timeoutMs: 20_000 })) !== true)
    throw new LabError(`server of pod ${pod.key}`, `does not listen: ${logTail(log, 10)}`)
}
