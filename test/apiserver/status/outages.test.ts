// SPDX-License-Identifier: Apache-2.0
/** What an agent could not tell. The clock is the test's. Layer: test. */
import { expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import { NodeCondition } from '#agent/status/node-condition.ts'
import { Outbox, WRITTEN } from '#agent/status/outbox.ts'
import { PodConditions, PROGRAMMED } from '#agent/status/pod-conditions.ts'
import { waitFor } from '../../../lab/wait.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { NODE, POD, RUNNING, statusServer } from './server.ts'

const server = await statusServer()

test('status that changes while the server is away is written when it is back', async () => {
  await server.runPod()
  const pods = await server.podsInStore()
  const clock = new FakeClock()
  const health = new Health(() => Date.now())
  const wall = (): number => Date.now()
  await using own = new ApiClient({ server: fromKubeconfig(server.cluster.kubeconfig()) })
  const outbox = new Outbox({
    ...{ clock, health, log: silentLog },
    subjects: [
      new NodeCondition({ api: own, node: 'n1', unready: () => [], takesPods: () => false, wasReady: false, isKnown: () => true, wall }),
      new PodConditions({
        ...{ api: own, node: 'n1', wall, pods: () => pods, interfacePrefix: () => 'npl' },
        missingOf: () => undefined,
        isReady: () => true,
      }),
    ],
  })
  const reason = (): string | undefined => health.report().conditions.find(({ name }) => name === WRITTEN)?.reason
  await server.cluster.kill('kube-apiserver')
  await outbox.round(RUNNING)
  expect(reason()).toMatch(/127\.0\.0\.1/)
  await server.cluster.startServer()
  const told = async (): Promise<true | undefined> => {
    clock.advance(1000)
    await outbox.round(RUNNING)
    return (await server.condition(POD, PROGRAMMED)) === undefined ? undefined : true
  }
  expect(await waitFor(told, { timeoutMs: 30_000, everyMs: 50 })).toBe(true)
  expect(await server.condition(NODE, 'NetworkUnavailable')).toMatchObject({ status: 'False' })
  expect(reason()).toBe('')
})
