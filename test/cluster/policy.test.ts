// SPDX-License-Identifier: Apache-2.0
/** NetworkPolicy in a real cluster: which pods may reach which, from the moment a pod is there. Layer: test. */
import { expect, test } from 'vitest'
import { waitFor } from '../../lab/wait.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import { Namespace } from './namespaces.ts'
import { ask, HTTP_PORT, inPod, runPods, urlOf, type RunningPod } from './pods.ts'
import { sharedCluster } from './setup.ts'

const cluster = await sharedCluster()

/** Questions behind each other that must be answered, or not, before that is believed: one may be lost, or luck. */
const ROUNDS = 3

async function reaches(from: RunningPod, to: RunningPod, wanted: boolean): Promise<void> {
  if (to.addresses.length === 0) throw new Error(`${to.name} has no address`)
  const isRight = async (): Promise<boolean> => {
    const all = await Promise.all(to.addresses.map((address) => ask(cluster, from, urlOf(address, HTTP_PORT))))
    return all.every((answer) => (answer === to.name) === wanted)
  }
  const lasts = async (): Promise<true | undefined> => {
    for (let round = 0; round < ROUNDS; round++) if (!(await isRight())) return undefined
    return true
  }
  const found = await waitFor(lasts, { timeoutMs: HANG_MS, everyMs: 100 })
  if (found === undefined) throw new Error(`${from.name} ${wanted ? 'does not reach' : 'still reaches'} ${to.name}`)
}

function policy(namespace: string, name: string, spec: object): object {
  return { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { namespace, name }, spec }
}

test('a policy denies all, then lets one label in, on the same node and across nodes [once]', async () => {
  await using namespace = await Namespace.make(cluster, 'policy')
  const [server, friend, stranger] = await runPods(cluster, namespace.name, [
    { name: 'server', node: 'a', labels: { app: 'server' } },
    { name: 'friend', node: 'b', labels: { role: 'friend' } },
    { name: 'stranger', node: 'a' },
  ])
  if (server === undefined || friend === undefined || stranger === undefined) throw new Error('no pods')
  for (const from of [friend, stranger]) await reaches(from, server, true)
  const spec = { podSelector: { matchLabels: { app: 'server' } }, policyTypes: ['Ingress'] }
  await cluster.apply(policy(namespace.name, 'closed', spec))
  for (const from of [friend, stranger]) await reaches(from, server, false)
  await cluster.apply(
    policy(namespace.name, 'friends', { ...spec, ingress: [{ from: [{ podSelector: { matchLabels: { role: 'friend' } } }] }] }),
  )
  await reaches(friend, server, true)
  await reaches(stranger, server, false)
  await cluster.kubectl(['delete', 'networkpolicy', '--all', '-n', namespace.name])
  await reaches(stranger, server, true)
})

test("a pod's first packet finds its policy [once]", async () => {
  await using namespace = await Namespace.make(cluster, 'first')
  const [server] = await runPods(cluster, namespace.name, [{ name: 'server', node: 'b' }])
  if (server === undefined) throw new Error('no server')
  await cluster.apply(policy(namespace.name, 'closed', { podSelector: { matchLabels: { app: 'tries' } }, policyTypes: ['Egress'] }))
  // begins to ask before anything else of it runs, and says whether an answer ever came
  const script = `end=$(($(date +%s) + 10)); while [ $(date +%s) -lt $end ]; do curl -s --max-time 0.5 ${urlOf(server.addresses[0] ?? '', HTTP_PORT)} && touch /tmp/answered; done; exec /agnhost netexec --http-port=${HTTP_PORT}`
  // one that the policy is not for is answered: the script would have told
  const pods = await runPods(cluster, namespace.name, [
    { name: 'tries', node: 'a', labels: { app: 'tries' }, script },
    { name: 'free', node: 'a', script },
  ])
  const found = pods.map(async (pod) => [pod.name, (await inPod(cluster, pod, ['test', '-e', '/tmp/answered'])).status] as const)
  expect(Object.fromEntries(await Promise.all(found))).toEqual({ tries: 1, free: 0 })
})
