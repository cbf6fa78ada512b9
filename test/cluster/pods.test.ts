// SPDX-License-Identifier: Apache-2.0
/** Pods of a real cluster get addresses of both families and reach each other, the API server and their nodes.
 * Layer: test. */
import { expect, test } from 'vitest'
import { Namespace } from './namespaces.ts'
import { listAt, textAt } from '../../lab/raw.ts'
import { addressesOf, ask, askFrom, HTTP_PORT, inPod, runPods, urlOf } from './pods.ts'
import { sharedCluster } from './setup.ts'

const cluster = await sharedCluster()

test('pods reach each other on one node and across nodes, by both families', async () => {
  await using namespace = await Namespace.make(cluster, 'pods')
  const pods = await runPods(cluster, namespace.name, [
    { name: 'one', node: 'a' },
    { name: 'two', node: 'a' },
    { name: 'three', node: 'b' },
  ])
  for (const pod of pods) expect(pod.addresses.map((address) => address.includes(':'))).toEqual([false, true])
  for (const from of pods)
    for (const to of pods)
      for (const address of to.addresses)
        expect([from.name, address, await ask(cluster, from, urlOf(address, HTTP_PORT))]).toEqual([from.name, address, to.name])
})

test('pods are reached by their node, and see the address of the client', async () => {
  await using namespace = await Namespace.make(cluster, 'hosts')
  const [near, far] = await runPods(cluster, namespace.name, [
    { name: 'near', node: 'a' },
    { name: 'far', node: 'b' },
  ])
  for (const address of addressesOf(near)) expect(await askFrom(cluster, 'node/a', urlOf(address, HTTP_PORT))).toBe('near')
  for (const address of addressesOf(far)) expect(await askFrom(cluster, 'node/a', urlOf(address, HTTP_PORT))).toBe('far')
})

test('pods reach the API server by its name, with the account they are given', async () => {
  await using namespace = await Namespace.make(cluster, 'accounts')
  const [pod] = await runPods(cluster, namespace.name, [{ name: 'asks', node: 'b' }])
  if (pod === undefined) throw new Error('no pod')
  const secrets = '/var/run/secrets/kubernetes.io/serviceaccount'
  const script = `curl -s --max-time 5 --cacert ${secrets}/ca.crt -H "Authorization: Bearer $(cat ${secrets}/token)" https://kubernetes.default.svc.cluster.local/version`
  const { stdout } = await inPod(cluster, pod, ['sh', '-c', script])
  expect(stdout).toContain('"gitVersion": "v1.')
})

test('pods are reached at a port of their node, by both families', async () => {
  await using namespace = await Namespace.make(cluster, 'ports')
  const [, near, far] = await runPods(cluster, namespace.name, [
    { name: 'server', node: 'a', hostPort: 18080 },
    { name: 'near', node: 'a' },
    { name: 'far', node: 'b' },
  ])
  if (near === undefined || far === undefined) throw new Error('no pods')
  const addresses = listAt(await cluster.get('node', 'a'), 'status.addresses').filter((entry) => textAt(entry, 'type') === 'InternalIP')
  expect(addresses).toHaveLength(2)
  for (const url of addresses.map((entry) => urlOf(textAt(entry, 'address') ?? '', 18080))) {
    for (const place of ['node/a', 'node/b', 'client', 'far'])
      expect([place, url, await askFrom(cluster, place, url)]).toEqual([place, url, 'server'])
    for (const pod of [near, far]) expect([pod.name, url, await ask(cluster, pod, url)]).toEqual([pod.name, url, 'server'])
  }
})
