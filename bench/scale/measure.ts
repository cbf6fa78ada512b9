// SPDX-License-Identifier: Apache-2.0
/** A large cluster in a real API server, and what nodes of it cost. To be run in network, mount and process
 * namespaces of its own; writes its figures to the file it is given. Layer: bench. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { systemClock } from '#lib/base/clock.ts'
import { errorText, InternalError } from '#lib/base/errors.ts'
import { LoopbackCluster } from '../../testkit/kubernetes/loopback-cluster.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { cpuOf, memoryOf } from '../base/process.ts'
import { inSandbox, QUIET_MS, type Sandbox } from '../control/sandbox.ts'
import { makeChanges } from './changes.ts'
import { startContender, type Running } from './contender.ts'
import { fanOut, listCosts } from './fan-out.ts'
import { CONTENDERS, type Contender, type FanOutFigure, type ScaleFigure, type ScaleFigures, type Sync } from './result.ts'
import { define, load } from './load.ts'
import { podsAndPoliciesOf, servicesOf } from './objects.ts'

/** Nodes that watch, from which the line to 5,000 is drawn; by the number of services. */
const WATCHERS = { few: [0, 50, 100, 200], many: [0, 100, 300, 1000] }
const MANY_SERVICES = 10_000
const FAN_OUT_CHANGES = 100
/** Times that each starts, of which the fastest counts; kube-proxy takes minutes with many services. */
const STARTS = 3
/** kube-proxy waits a second after each of its rounds: that is not to be part of the next. */
const PAUSE_MS: Readonly<Record<Contender, number>> = { netplane: 50, 'kube-proxy': 1200 }

interface Scene {
  readonly ground: Sandbox
  readonly cluster: LoopbackCluster
  readonly client: ApiClient
  readonly programs: string
  readonly services: number
  /** of each contender */
  readonly changes: Readonly<Record<Contender, number>>
  /** changes that have been made so far */
  made: number
}

async function measure(scene: Scene, contender: Contender, what: string): Promise<ScaleFigure> {
  const { ground, client, services } = scene
  const starts = contender === 'kube-proxy' && services >= MANY_SERVICES ? 1 : STARTS
  const syncs: Sync[] = []
  while (syncs.length < starts - 1) {
    await using running = await startAlone(scene, contender)
    syncs.push(running.sync)
  }
  await using running = await startAlone(scene, contender)
  syncs.push(running.sync)
  await systemClock.sleep(QUIET_MS, ground.signal)
  const memoryMb = memoryOf(running.pid)
  const before = cpuOf(running.pid)
  const rounds = Array.from({ length: scene.changes[contender] }, () => ++scene.made)
  const { seenMs, toldMs } = await makeChanges({
    ...{ client, running, services, rounds },
    pauseMs: PAUSE_MS[contender],
    signal: ground.signal,
  })
  const changeCpuMs = (cpuOf(running.pid) - before) / rounds.length
  say(`${contender}, ${what}: in sync after ${syncs.map(({ seconds }) => seconds.toFixed(1)).join(', ')} s`)
  return { contender, syncs, memoryMb, changeMs: seenMs, toldMs, changeCpuMs }
}

/** After what the server still does for those before: all that it has was written a moment ago. */
async function startAlone({ ground, cluster, programs, services }: Scene, contender: Contender): Promise<Running> {
  await systemClock.sleep(QUIET_MS, ground.signal)
  return await startContender(contender, { ground, programs, services, kubeconfig: cluster.kubeconfig() })
}

async function measureAll(scene: Scene, settings: Readonly<Record<string, unknown>>): Promise<ScaleFigures> {
  const { cluster, client, services, ground } = scene
  const kubectl = [join(scene.programs, 'kubectl'), `--kubeconfig=${cluster.kubeconfig()}`]
  await define(client, kubectl, settings)
  const first = await timedLoad(client, servicesOf(services))
  const servicesAlone = await measure(scene, 'netplane', 'services alone')
  const rest = await timedLoad(client, podsAndPoliciesOf(services))
  const contenders: ScaleFigure[] = []
  for (const contender of CONTENDERS) contenders.push(await measure(scene, contender, 'all'))
  const pid = cluster.pid('kube-apiserver')
  if (pid === undefined) throw new InternalError('the API server has ended')
  const server = fromKubeconfig(cluster.kubeconfig())
  const options = { server, client, pid, services, changes: FAN_OUT_CHANGES, signal: ground.signal }
  const lists = await listCosts(options)
  const fan: FanOutFigure[] = []
  for (const watchers of services < MANY_SERVICES ? WATCHERS.few : WATCHERS.many) {
    fan.push(await fanOut(options, watchers, scene.made + 1))
    scene.made += FAN_OUT_CHANGES
    say(`${watchers} watching nodes`)
  }
  return {
    services,
    objects: first.objects + rest.objects,
    loadSeconds: first.seconds + rest.seconds,
    ...{ servicesAlone, contenders, lists },
    fanOut: fan,
  }
}

async function timedLoad(client: ApiClient, all: Generator<ApiObject>): Promise<{ readonly objects: number; readonly seconds: number }> {
  const begun = systemClock.now()
  const objects = await load(client, all)
  const seconds = (systemClock.now() - begun) / 1000
  say(`${objects} objects loaded in ${seconds.toFixed(0)} s`)
  return { objects, seconds }
}

function say(text: string): void {
  process.stderr.write(`scale: ${text}\n`)
}

async function main(argv: readonly string[]): Promise<void> {
  const [services = '1000', ours = '100', theirs = '20', out = ''] = argv
  const programs = await kubernetesPrograms()
  const folder = mkdtempSync(join(tmpdir(), 'netplane-scale-'))
  try {
    await inSandbox(async (ground) => {
      await using cluster = await LoopbackCluster.start({ programs, folder: join(folder, 'cluster') })
      await using client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
      const changes = { netplane: Number(ours), 'kube-proxy': Number(theirs) }
      const scene: Scene = { ground, cluster, client, programs, services: Number(services), changes, made: 0 }
      writeFileSync(out, JSON.stringify(await measureAll(scene, { cgroupV2Path: ground.cgroup })))
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

try {
  await main(process.argv.slice(2))
} catch (thrown) {
  say(errorText(thrown))
  process.exitCode = 1
}
