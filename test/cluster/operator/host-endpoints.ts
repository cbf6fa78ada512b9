// SPDX-License-Identifier: Apache-2.0
/** Policy at a node's own port, by host endpoints made by hand, then by automatic ones, as docs/netplanectl.md leads
 * from these to those. Layer: test. */
import { join } from 'node:path'
import { expect } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'
import { listAt, textAt } from '../../../lab/raw.ts'
import type { Cluster } from '../../../testkit/kubernetes/cluster.ts'
import { Asking } from '../asking.ts'
import { askFrom, urlOf } from '../pods.ts'

const V3 = 'netplane.io/v3'
const PORT = 8099
const SERVER = 'own-server'
const CLOSED = [{ action: 'Deny', protocol: 'TCP', destination: { ports: [PORT] } }, { action: 'Allow' }]
const OPEN_BOTH_WAYS = { 'a to b': 'open', 'b to a': 'open' }

/** Between two nodes, and everything is as before afterwards. */
export async function tryHostEndpoints(cluster: Cluster): Promise<void> {
  const command = [join(cluster.programs, 'agnhost'), 'netexec', `--http-port=${PORT}`]
  for (const node of ['a', 'b']) await cluster.daemons.start({ node }, command, { name: SERVER })
  await expect.poll(() => waysOf(cluster)).toEqual(OPEN_BOTH_WAYS)
  await cluster.apply(policy({ ingress: CLOSED }), {
    ...{ apiVersion: V3, kind: 'HostEndpoint', metadata: { name: 'old-a', labels: { door: 'closed' } } },
    spec: { node: 'a', interfaceName: '*', profiles: ['netplane-default-allow'] },
  })
  await expect.poll(() => waysOf(cluster)).toEqual({ 'a to b': 'open', 'b to a': 'shut' })
  await migrate(cluster)
  expect(await waysOf(cluster)).toEqual({ 'a to b': 'open', 'b to a': 'shut' })
  // automatic ones have the labels of their nodes
  await cluster.kubectl(['label', 'node', 'a', 'door-'])
  await cluster.kubectl(['label', 'node', 'b', 'door=closed'])
  await expect.poll(() => waysOf(cluster)).toEqual({ 'a to b': 'shut', 'b to a': 'open' })
  await cluster.apply(policy({ egress: CLOSED }))
  await expect.poll(() => waysOf(cluster)).toEqual({ 'a to b': 'open', 'b to a': 'shut' })
  await takeAway(cluster)
  await expect.poll(() => waysOf(cluster)).toEqual(OPEN_BOTH_WAYS)
  for (const node of ['a', 'b']) await cluster.daemons.stop({ node }, SERVER, 'SIGKILL')
}

/** What was closed stays closed meanwhile, and what was open open. */
async function migrate(cluster: Cluster): Promise<void> {
  await using closed = new Asking(cluster.lab, 'node/b', urlOf(addressesOf(cluster, 'a')[0] ?? '', PORT))
  await using open = new Asking(cluster.lab, 'node/a', urlOf(addressesOf(cluster, 'b')[0] ?? '', PORT))
  await open.more(5)
  const line = [process.execPath, join(packageRoot(), 'dist/cli/main.js'), 'migrate', 'host-endpoints', '--yes']
  const said = await cluster.lab.mustRun('fabric', [...line, '--kubeconfig', cluster.plane.kubeconfig], { timeoutMs: 60_000 })
  expect(said).toContain('deleted: old-a')
  expect(await endpointsOf(cluster)).toEqual(['a-auto-hep', 'b-auto-hep'])
  await open.more(5)
  expect({ answered: closed.answered, lost: open.lost }).toEqual({ answered: 0, lost: [] })
}

async function takeAway(cluster: Cluster): Promise<void> {
  await cluster.kubectl(['label', 'node', 'b', 'door-'])
  await cluster.kubectl(['delete', 'globalnetworkpolicy.netplane.io', 'doors'])
  const spec = { controllers: { node: { hostEndpoint: { autoCreate: 'Disabled' } } } }
  await cluster.kubectl(['patch', 'controllersconfiguration', 'default', '--type=merge', '-p', JSON.stringify({ spec })])
  await expect.poll(() => endpointsOf(cluster)).toEqual([])
}

/** Of nodes with this label; the other direction stays as it is. */
function policy(rules: { readonly ingress?: readonly object[]; readonly egress?: readonly object[] }): object {
  const spec = { selector: "door == 'closed'", types: [rules.ingress === undefined ? 'Egress' : 'Ingress'], ...rules }
  return { apiVersion: V3, kind: 'GlobalNetworkPolicy', metadata: { name: 'doors' }, spec }
}

async function endpointsOf(cluster: Cluster): Promise<readonly string[]> {
  return listAt(await cluster.get('hostendpoints'), 'items').flatMap((one) => textAt(one, 'metadata.name') ?? [])
}

/** Of each node to the other's port, in all families: "open" or "shut", or both where they differ. */
async function waysOf(cluster: Cluster): Promise<Readonly<Record<string, string>>> {
  const way = async (from: string, to: string): Promise<readonly [string, string]> => {
    const answers = await Promise.all(addressesOf(cluster, to).map((address) => askFrom(cluster, `node/${from}`, urlOf(address, PORT))))
    return [`${from} to ${to}`, [...new Set(answers.map((answer) => (answer === undefined ? 'shut' : 'open')))].join(' and ')]
  }
  return Object.fromEntries(await Promise.all([way('a', 'b'), way('b', 'a')]))
}

function addressesOf(cluster: Cluster, node: string): readonly string[] {
  return cluster.addresses.nodes[node] ?? []
}
