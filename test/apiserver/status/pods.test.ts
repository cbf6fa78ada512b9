// SPDX-License-Identifier: Apache-2.0
/** What an agent tells a real API server of its node: its pods' conditions. The clock is the test's. Layer: test. */
import { beforeEach, describe, expect, test } from 'vitest'
import type { Pod } from '#lib/model/pod.ts'
import { LATE_MS, PodConditions, PROGRAMMED } from '#agent/status/pod-conditions.ts'
import { POD, RUNNING, statusServer, tell } from './server.ts'

const HOUR_MS = 3_600_000

const server = await statusServer()

describe('the condition of a pod', () => {
  let pods: readonly Pod[] = []
  let missing: string | undefined
  const agent = () =>
    new PodConditions({
      api: server.client,
      node: 'n1',
      pods: () => pods,
      interfacePrefix: () => 'npl',
      missingOf: () => missing,
      isReady: () => true,
      wall: () => Date.now(),
    })

  /** An agent that has written the conditions of all pods. */
  const toldAgent = async (): Promise<PodConditions> => {
    const one = agent()
    await tell(one, 0)
    await tell(one, 1000)
    return one
  }

  const makeAgain = async (...ips: readonly string[]): Promise<void> => {
    await server.client.delete(POD, { gracePeriodSeconds: 0 })
    await server.runPod(POD.name, ...ips)
  }

  beforeEach(async () => {
    missing = undefined
    await server.runPod()
    pods = await server.podsInStore()
  })

  test('is written once, beside those of others; the next agent writes nothing', async () => {
    const one = agent()
    expect([await tell(one, 0), await tell(one, 1000), await tell(one, 2000), await tell(one, 60_000)]).toEqual([1, 1, 0, 0])
    expect(await server.condition(POD, PROGRAMMED)).toMatchObject({ status: 'True', reason: 'Programmed' })
    expect(await server.condition(POD, 'Ready')).toMatchObject({ status: 'True' })
    const before = await server.version(POD)
    const next = agent()
    expect([await tell(next, 0), await tell(next, 1000), await server.version(POD)]).toEqual([1, 0, before])
  })

  test('is not written of a pod that has the veth of a pod before it', async () => {
    const one = agent()
    const [pod] = pods
    if (pod === undefined) throw new Error('no pod')
    pods = [{ ...pod, veth: { iface: 'npl1', ours: true, former: true } }]
    expect([await tell(one, 0), await tell(one, 1000)]).toEqual([1, 0])
    pods = [{ ...pod, veth: { iface: 'npl1', ours: true } }]
    expect(await tell(one, 2000)).toBe(1)
  })

  test('says what is missing when it is late, and when it is there', async () => {
    const one = agent()
    missing = 'no program runs at npl1/ingress'
    await tell(one, 0)
    expect([await tell(one, 1000), await tell(one, 1000 + LATE_MS - 1), await tell(one, 1000 + LATE_MS)]).toEqual([0, 0, 1])
    expect(await server.condition(POD, PROGRAMMED)).toMatchObject({ status: 'False', reason: 'NotProgrammed', message: missing })
    missing = undefined
    expect(await tell(one, 2000 + LATE_MS)).toBe(1)
    expect(await server.condition(POD, PROGRAMMED)).toMatchObject({ status: 'True', reason: 'Programmed' })
  })

  test('says which pod has the address of this one', async () => {
    const one = agent()
    const [pod] = pods
    if (pod === undefined) throw new Error('no pod')
    pods = [{ ...pod, podIPs: [], lost: pod.podIPs.map((addr) => ({ addr, to: 'default/other' })) }]
    await tell(one, 0)
    expect([await tell(one, 1000), await tell(one, 1000 + LATE_MS)]).toEqual([0, 1])
    expect(await server.condition(POD, PROGRAMMED)).toMatchObject({ status: 'False', message: '10.1.0.7 is that of pod default/other' })
    pods = [pod]
    expect(await tell(one, 2000 + LATE_MS)).toBe(1)
    expect(await server.condition(POD, PROGRAMMED)).toMatchObject({ status: 'True', reason: 'Programmed' })
  })

  test('a pod that comes later is asked for by its name; what has no addresses of its own, or goes, is not', async () => {
    const one = await toldAgent()
    await server.runPod('late', '10.1.0.8')
    pods = await server.podsInStore()
    const [first, late] = [pods.find(({ name }) => name === POD.name), pods.find(({ name }) => name === 'late')]
    if (first === undefined || late === undefined) throw new Error('no pods')
    const [host, going] = [
      { ...late, name: 'host', hostNetwork: true },
      { ...late, name: 'going', terminating: true },
    ]
    pods = [first, host, going, late]
    expect([await tell(one, 2000), await tell(one, 3000)]).toEqual([1, 0])
    expect(await server.condition({ ...POD, name: 'late' }, PROGRAMMED)).toMatchObject({ status: 'True' })
  })

  test('another pod of the name is not taken for the one that was seen', async () => {
    const one = agent()
    await tell(one, 0)
    const due = one.due(1000)
    await makeAgain()
    for (const { write } of due) await write(RUNNING)
    expect(await server.condition(POD, PROGRAMMED)).toBeUndefined()
    // as long as the store has the one of before, with the addresses of this one
    expect([await tell(one, 2000), await tell(one, 12_000)]).toEqual([0, 1])
    expect(await server.condition(POD, PROGRAMMED)).toBeUndefined()
    pods = await server.podsInStore()
    await tell(one, 13_000)
    expect(await server.condition(POD, PROGRAMMED)).toMatchObject({ status: 'True' })
  })

  test('a pod of the name with other addresses is not spoken for', async () => {
    const one = await toldAgent()
    await makeAgain('10.1.0.9')
    pods = pods.map((pod) => ({ ...pod, podIPs: [...pod.podIPs, ...pod.podIPs] }))
    expect(await tell(one, 2000)).toBe(1)
    expect(await server.condition(POD, PROGRAMMED)).toBeUndefined()
  })

  test('a pod made again with the address of the one before gets its condition as well', async () => {
    const one = await toldAgent()
    await makeAgain()
    pods = await server.podsInStore()
    expect([await tell(one, 2000), await tell(one, 3000)]).toEqual([1, 0])
    expect(await server.condition(POD, PROGRAMMED)).toMatchObject({ status: 'True' })
  })

  test('a pod that was going when all were listed leaves nothing to the next of its name', async () => {
    await server.client.patch(POD, { metadata: { finalizers: ['example.com/wait'] } }, { type: 'merge' })
    await tell(agent(), 0)
    await server.client.delete(POD, { gracePeriodSeconds: 0 })
    const one = agent()
    await tell(one, 0)
    await server.client.patch(POD, { metadata: { finalizers: null } }, { type: 'merge' })
    await server.runPod()
    pods = await server.podsInStore()
    await tell(one, 1000)
    expect(await server.condition(POD, PROGRAMMED)).toMatchObject({ status: 'True' })
  })

  test('a pod of both families is the same one whichever comes first', async () => {
    const one = agent()
    await tell(one, 0)
    await server.runPod('dual', 'fd00::8', '10.1.0.8')
    pods = (await server.podsInStore()).filter(({ name }) => name === 'dual').map((pod) => ({ ...pod, podIPs: pod.podIPs.toReversed() }))
    await tell(one, 1000)
    expect(await server.condition({ ...POD, name: 'dual' }, PROGRAMMED)).toMatchObject({ status: 'True' })
  })

  test('a condition that another client has removed is there again within two hours', async () => {
    const one = await toldAgent()
    await server.client.patch(POD, { status: { conditions: [] } }, { type: 'merge', subresource: 'status' })
    await tell(one, 2 * HOUR_MS)
    await tell(one, 2 * HOUR_MS + 1000)
    expect(await server.condition(POD, PROGRAMMED)).toMatchObject({ status: 'True' })
  })
})
