// SPDX-License-Identifier: Apache-2.0
/** Pods that come and go by the dozen: every one has an address of its own and answers, none is kept, and a pod that
 * stays is asked all the time. Layer: test. */
import { expect, test } from 'vitest'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { isLong } from './length.ts'
import { Asking } from './asking.ts'
import { Namespace } from './namespaces.ts'
import { ask, heldBy, HTTP_PORT, runPods, urlOf } from './pods.ts'
import { sharedCluster } from './setup.ts'
import { makeWeb } from './web.ts'

const cluster = await sharedCluster()
/** At a time: more than that many pods per CPU only wait for each other. */
const WAVE = 12
const WAVES = isLong ? 167 : 3

test(
  `${WAVE * WAVES} pods in waves of ${WAVE}`,
  async () => {
    await using namespace = await Namespace.make(cluster, 'churn')
    const { pods: web, url } = await makeWeb(cluster, namespace.name)
    await using asking = new Asking(cluster.lab, 'client', url)
    await asking.more(20)
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
      const answers = await mapLimited(pods, 4, (pod) => ask(cluster, client, urlOf(pod.addresses[wave % 2] ?? '', HTTP_PORT)))
      expect(answers).toEqual(pods.map((pod) => pod.name))
      await cluster.kubectl(['delete', 'pods', '-l', `wave=${wave}`, '-n', namespace.name, '--wait=false'])
    }
    const stay = [client, ...web].flatMap((pod) => pod.addresses)
    await expect.poll(() => heldBy(cluster, namespace.name), { timeout: 60_000, interval: 500 }).toBe(stay.length)
    expect(asking.lost).toEqual([])
  },
  WAVES * 60_000,
)
