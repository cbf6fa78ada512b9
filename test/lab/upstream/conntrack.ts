// SPDX-License-Identifier: Apache-2.0
/** Flows that outlive what they were made for: UDP clients that never change their port, segments out of their
 * window. Layer: test. */
import { expect, test } from 'vitest'
import { startCapture } from '../../../lab/traffic/capture.ts'
import type { Endpoint } from '../../../lab/tools/address.ts'
import { waitFor } from '../../../lab/wait.ts'
import type { Cluster, SettleOptions } from '../../../testkit/lab/cluster.ts'
import { addressOf, FAMILIES, PORTS, type Family } from '../../../testkit/lab/manifests.ts'
import { BOTH_PROTOCOLS, type TestService } from '../../../testkit/lab/test-service.ts'

/** The agent's time and the flow's: a busy machine may be slow, a stale entry lasts half a minute. */
const MOVED_MS = 20_000

/** One port a family: the same flow again and again. */
function fixed(family: Family): SettleOptions {
  return { localPort: 12340 + family, count: 2, timeoutMs: 250, withinMs: MOVED_MS }
}

interface Cycle {
  readonly from: string
  readonly to: (family: Family) => Endpoint
  readonly pods: readonly string[]
}

/** The client asks before there is a pod, then one pod takes over from the other. */
export async function cycles(cluster: Cluster, service: TestService, cycle: Cycle): Promise<void> {
  service.put({ endpoints: [] })
  const asks = (pod: string): Promise<unknown> =>
    Promise.all(FAMILIES.map((family) => cluster.answers({ from: cycle.from, to: cycle.to(family), pods: [pod], ...fixed(family) })))
  for (const family of FAMILIES) await cluster.fails(cycle.from, cycle.to(family))
  for (const pod of cycle.pods) {
    service.put({ endpoints: [pod] })
    await asks(pod)
  }
}

export function conntrackTests(cluster: Cluster): void {
  test('should be able to preserve UDP traffic when server pod cycles for a NodePort service', async () => {
    const service = cluster.service()
    service.put({ type: 'NodePort' })
    for (const node of ['a', 'c'] as const)
      await cycles(cluster, service, {
        from: 'client',
        to: (family) => service.on(node, family, 'udp'),
        pods: ['a-1', 'b-1', 'a-2', 'a-1'],
      })
  })

  for (const [suffix, from, pods, more] of [
    ['', 'shell-c', ['a-1', 'b-1', 'c-1'], {}],
    [' with InternalTrafficPolicy set to Local', 'shell-a', ['a-1', 'a-2', 'a-1'], { internalTrafficPolicy: 'Local' }],
    [' and client is hostNetwork', 'node/c', ['a-1', 'b-1', 'c-1'], {}],
  ] as const)
    test(`should be able to preserve UDP traffic when server pod cycles for a ClusterIP service${suffix}`, async () => {
      const service = cluster.service()
      service.put({ more })
      await cycles(cluster, service, { from, to: (family) => service.at(family, 'udp'), pods })
    })

  test('should be able to preserve UDP traffic when initial unready endpoints get ready', async () => {
    const service = cluster.service()
    service.put({ endpoints: [{ pod: 'a-1', ready: false }] })
    for (const family of FAMILIES) await cluster.refuses('shell-c', service.at(family, 'udp'))
    for (const family of FAMILIES) await cluster.ask('shell-c', service.at(family, 'udp'), { localPort: 12340 + family, timeoutMs: 250 })
    service.put({ endpoints: ['a-1'] })
    for (const family of FAMILIES)
      await cluster.answers({ from: 'shell-c', to: service.at(family, 'udp'), pods: ['a-1'], ...fixed(family) })
  })

  test('should be able to cleanup conntrack entries when UDP service target port changes for a NodePort service', async () => {
    const service = cluster.service()
    service.put({ type: 'NodePort', endpoints: ['b-1'] })
    for (const port of [...PORTS, PORTS[0]]) {
      service.put({ ports: BOTH_PROTOCOLS.map((each) => ({ ...each, targetPort: port })) })
      for (const family of FAMILIES) await answersAt(cluster, { to: service.on('a', family, 'udp'), port, family })
    }
  })

  test('proxy implementation should not be vulnerable to the invalid conntrack state bug [Privileged]', async () => {
    const service = cluster.service()
    service.put({ type: 'NodePort', endpoints: ['b-1'] })
    for (const family of FAMILIES) {
      await staysWhole(cluster, { from: 'client', to: service.on('a', family), family })
      await staysWhole(cluster, { from: 'shell-a', to: service.at(family), family })
    }
  })
}

/** Until the client's one flow comes to this port of the pod. */
async function answersAt(cluster: Cluster, what: { readonly to: Endpoint; readonly port: number; readonly family: Family }): Promise<void> {
  const { to, port, family } = what
  const { withinMs = MOVED_MS, ...options } = fixed(family)
  let last: unknown
  const found = await waitFor(
    async () => {
      const [answer] = await cluster.ask('client', to, options)
      last = answer
      return answer !== undefined && 'local' in answer && answer.local.endsWith(`:${port}`) ? true : undefined
    },
    { timeoutMs: withinMs },
  )
  expect(found, `port ${port} by ${to.address}, at last ${JSON.stringify(last)}`).toBe(true)
}

/** The pod's answer goes out with a sequence number far outside the window, then, as TCP sends again, as it should
 * be. The client must never see the pod's own address, and the connection must live. */
async function staysWhole(cluster: Cluster, way: { readonly from: string; readonly to: Endpoint; readonly family: Family }): Promise<void> {
  const { lab } = cluster
  const { from, to, family } = way
  await cluster.reaches(from, to, ['b-1'])
  const opened = await cluster.order(from, { do: 'open', connection: 'whole', to: `tcp:${bracketed(to)}`, timeoutMs: 2000 })
  expect(opened).toMatchObject([{ pod: 'b-1' }])
  // behind a connection that the socket itself has made to the pod, that address is no stranger
  const pod = addressOf('b-1', family)
  const strangers = await startCapture(lab, { place: from, device: 'eth0', filter: `src host ${pod} and tcp` })
  const rule = 'tcp sport 8080 tcp flags & psh == psh limit rate 1/hour burst 1 packets tcp sequence set 4000000000 counter'
  await lab.mustRun('b-1', ['nft', '-f', '-'], {
    input: `add table inet wrong\nadd chain inet wrong out { type filter hook output priority 0; }\nadd rule inet wrong out ${rule}\n`,
  })
  try {
    const answers = await cluster.order(from, { do: 'say', connection: 'whole', timeoutMs: 5000 })
    expect(answers, `from ${from} by ${bracketed(to)}`).toMatchObject([{ pod: 'b-1' }])
    expect(await lab.mustRun('b-1', ['nft', 'list', 'table', 'inet', 'wrong'])).toMatch(/counter packets 1 /)
    expect(await cluster.order(from, { do: 'say', connection: 'whole', timeoutMs: 2000 })).toMatchObject([{ pod: 'b-1' }])
    expect(await cluster.order(from, { do: 'finish', connection: 'whole', timeoutMs: 2000 })).toEqual([{ finished: true }])
  } finally {
    await lab.mustRun('b-1', ['nft', 'delete', 'table', 'inet', 'wrong'])
  }
  const seen = await strangers.stop(0)
  if (from === 'client') expect(seen).toEqual([])
}

function bracketed(to: Endpoint): string {
  return to.address.includes(':') ? `[${to.address}]:${to.port}` : `${to.address}:${to.port}`
}
