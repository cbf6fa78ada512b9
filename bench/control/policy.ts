// SPDX-License-Identifier: Apache-2.0
/** Policy of a large cluster: from the start of the real agent until all of it is in the kernel, and new pods. To be
 * run in network and mount namespaces of its own; writes its figures to standard output as JSON. Layer: bench. */
import { catalogue } from '#agent/maps/catalogue.ts'
import { encodeBytes } from '#agent/maps/byte-rows.ts'
import { systemClock } from '#lib/base/clock.ts'
import { InternalError } from '#lib/base/errors.ts'
import { parseAddr } from '#lib/base/ip.ts'
import { median, quantile } from '../base/statistics.ts'
import { addPod, newPod, podAddresses, writePolicyCluster, type PolicyClusterSize } from '../policy-cluster.ts'
import type { AgentProcess } from './agent-process.ts'
import { cleanUp } from './agent-process.ts'
import type { PolicyFigure } from './result.ts'
import type { Sandbox } from './sandbox.ts'
import { CHANGE_TIMEOUT_MS, QUIET_MS, READY_MS, inSandbox, start } from './sandbox.ts'
import { PinnedMap, policyMemory } from './rows.ts'

const NO_SET = '0'.repeat(16)
const PODS_PER_POLICY = 10

interface Rounds extends Sandbox {
  readonly starts: number
  readonly newPods: number
}

async function measure(ground: Rounds, size: PolicyClusterSize): Promise<PolicyFigure> {
  writePolicyCluster(ground.place.resources, size, { cgroupV2Path: ground.cgroup })
  const cold = { seconds: [] as number[], cpuMs: [] as number[] }
  for (let round = 0; round < ground.starts; round++) {
    await cleanUp(ground.place, ground.cgroup)
    const agent = start(ground)
    cold.seconds.push(await agent.ready(READY_MS))
    cold.cpuMs.push(agent.cpuMs())
    await checkRows(ground, agent, size)
    await agent.end('SIGKILL')
  }
  const agent = start(ground)
  await agent.ready(READY_MS)
  await systemClock.sleep(QUIET_MS, ground.signal)
  const memoryMb = agent.memoryMb()
  const mapMb = policyMemory(agent.pid, ground.place.pinDir)
  const pods = await addPods(ground, agent)
  await agent.end('SIGTERM')
  await cleanUp(ground.place, ground.cgroup)
  return {
    pods: size.pods,
    coldSeconds: cold.seconds,
    coldCpuMs: cold.cpuMs,
    podMs: { p25: quantile(pods.ms, 0.25), p50: median(pods.ms), p75: quantile(pods.ms, 0.75), p99: quantile(pods.ms, 0.99) },
    podCpuMs: pods.cpuMs,
    memoryMb,
    mapMb,
  }
}

/** Ready means that all of it is there: a row for each address, rules for every endpoint of this node that has any, and
 * every policy in force. */
async function checkRows({ place }: Sandbox, agent: AgentProcess, { pods }: PolicyClusterSize): Promise<void> {
  const addrs = new PinnedMap(place.pinDir, catalogue.np_addrs)
  const rows = Array.from({ length: pods }, (_, at) => podAddresses(at).map((address) => addrs.get(parseAddr(address)))).flat()
  addrs.map.close()
  const missing = rows.filter((row) => row === undefined).length
  const ruled = rows.filter((row) => row !== undefined && (row.ingress !== NO_SET || row.egress !== NO_SET)).length
  const local = (await agent.metric('netplane_policy_endpoints')).get('')
  const states = [...(await agent.metric('netplane_policies'))].filter(
    ([state, policies]) => policies > 0 && state !== '{state="in-force"}',
  )
  if (states.length > 0) throw new InternalError(`ready with policies that are not in force: ${JSON.stringify(states)}`)
  if (missing > 0 || local === undefined || local === 0 || ruled !== 2 * local)
    throw new InternalError(`ready without ${missing} of ${rows.length} addresses, rules for ${ruled} of those of ${local ?? 0} endpoints`)
}

/** One after the other, by turns on this node and on another. */
async function addPods(ground: Rounds, agent: AgentProcess): Promise<{ readonly ms: readonly number[]; readonly cpuMs: number }> {
  const { resources, pinDir } = ground.place
  const addrs = new PinnedMap(pinDir, catalogue.np_addrs)
  const ms: number[] = []
  const before = agent.cpuMs()
  for (let round = 0; round < ground.newPods; round++) {
    const at = newPod(round)
    const keys = podAddresses(at).map((address) => encodeBytes(addrs.codecs.key, parseAddr(address)))
    const begun = systemClock.now()
    addPod(resources, at)
    while (!keys.every((key) => addrs.map.lookup(key) !== undefined)) {
      if (systemClock.now() - begun > CHANGE_TIMEOUT_MS)
        throw new InternalError(`pod ${at} is not in the maps after ${CHANGE_TIMEOUT_MS} ms`)
    }
    ms.push(systemClock.now() - begun)
    await systemClock.sleep(15, ground.signal)
  }
  addrs.map.close()
  return { ms, cpuMs: (agent.cpuMs() - before) / ground.newPods }
}

async function main(argv: readonly string[]): Promise<void> {
  const [pods = '10000', starts = '3', newPods = '100'] = argv
  const size = { pods: Number(pods), policies: Number(pods) / PODS_PER_POLICY }
  await inSandbox(async (ground) => {
    const figure = await measure({ ...ground, starts: Number(starts), newPods: Number(newPods) }, size)
    process.stdout.write(`${JSON.stringify([figure])}\n`)
  })
}

await main(process.argv.slice(2))
