// SPDX-License-Identifier: Apache-2.0
/** Pods that come and go by the dozen: every one has an address of its own and answers, and none is kept. Layer: test. */
import { expect, test } from 'vitest'
import { isLong } from './length.ts'
import { mapLimit } from '../../lab/command.ts'
import { listAt, textAt } from '../../lab/raw.ts'
import { waitFor } from '../../lab/wait.ts'
import { Cluster } from '../kubernetes/cluster.ts'
import { Namespace } from './namespaces.ts'
import { ask, HTTP_PORT, runPods, urlOf } from './pods.ts'
import { CLUSTER } from './setup.ts'

const cluster = await Cluster.open(CLUSTER)
/** At a time: more than that many pods per CPU only wait for each other. */
const WAVE = 12
const WAVES = isLong ? 160 : 3

/** Addresses that pods of this namespace have in blocks. */
async function held(namespace: string): Promise<number> {
  const blocks = listAt(await cluster.get('ipamblocks'), 'items')
  return blocks.flatMap((block) => listAt(block, 'spec.allocations')).filter((one) => textAt(one, 'namespace') === namespace).length
}

test(
  `${WAVE * WAVES} pods in waves of ${WAVE}`,
  async () => {
    await using namespace = await Namespace.make(cluster, 'churn')
    const [client] = await runPods(cluster, namespace.name, [{ name: 'client', node: 'a' }])
    if (client === undefined) throw new Error('no client')
    for (let wave = 0; wave < WAVES; wave++) {
      const specs = Array.from({ length: WAVE }, (_, index) => ({
        name: `pod-${wave}-${index}`,
        node: index % 2 === 0 ? 'a' : 'b',
        labels: { wave: String(wave) },
      }))
      const pods = await runPods(cluster, namespace.name, specs)
      const addresses = pods.flatMap((pod) => pod.addresses)
      expect(new Set(addresses).size).toBe(2 * WAVE)
      const answers = await mapLimit(pods, 4, (pod) => ask(cluster, client, urlOf(pod.addresses[wave % 2] ?? '', HTTP_PORT)))
      expect(answers).toEqual(pods.map((pod) => pod.name))
      await cluster.kubectl(['delete', 'pods', '-l', `wave=${wave}`, '-n', namespace.name, '--wait=false'])
    }
    const none = await waitFor(async () => ((await held(namespace.name)) === client.addresses.length ? true : undefined), {
      timeoutMs: 60_000,
      everyMs: 500,
    })
    if (none !== true) throw new Error(`${await held(namespace.name)} addresses are held by one pod`)
  },
  WAVES * 60_000,
)
