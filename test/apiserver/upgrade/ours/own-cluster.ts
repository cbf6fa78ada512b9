// SPDX-License-Identifier: Apache-2.0
/** Another version of this form, installed by its files and edited since, in a real API server. Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { asApiObject, isApiObject, type ApiObject } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { fieldsOf } from '#lib/base/object.ts'
import { readManifest } from '#lib/manifests/read.ts'
import { put } from '../../definitions.ts'
import { soon } from '../../controllers/controllers.ts'
import type { OldCluster } from '../old-cluster.ts'
import { agentsOf, NODES } from '../plant-forms.ts'

const V3 = 'netplane.io/v3'

/** Of deploy/, as that version would have it: by its image, and what its definitions say of themselves. */
export function fileOf(name: string, version: string): readonly ApiObject[] {
  const text = readFileSync(join(packageRoot(), 'deploy', name), 'utf8').replaceAll(/(netplane:|-version: v)3\.31\.5/g, `$1${version}`)
  const read = readManifest(name, text)
  if (read.kind !== 'ok') throw new Error(name)
  return read.objects.map(({ value }) => value).filter(isApiObject)
}

/** By `kubectl apply --server-side`. */
export async function applyFile({ client }: OldCluster, name: string, version: string): Promise<void> {
  for (const object of fileOf(name, version)) await client.apply(object, { fieldManager: 'kubectl', force: true })
}

/** What administrators and agents have written meanwhile. */
export const OBJECTS: readonly ApiObject[] = [
  ...NODES.map((name, at) => ({
    ...{ apiVersion: V3, kind: 'NodeNetwork', metadata: { name } },
    spec: { blocks: [`10.28.${at}.0/26`], interfaces: [{ name: 'eth0', addresses: [`192.0.2.${at + 1}`] }] },
  })),
  {
    apiVersion: V3,
    kind: 'IPPool',
    metadata: { name: 'pods' },
    spec: { cidr: '10.28.0.0/16', vxlanMode: 'CrossSubnet', natOutgoing: true },
  },
  {
    ...{ apiVersion: V3, kind: 'IPAMBlock', metadata: { name: '10-28-0-0-26' } },
    spec: { cidr: '10.28.0.0/26', node: 'a', allocations: [{ address: '10.28.0.7', namespace: 'shop', pod: 'web', containerId: 'c1' }] },
  },
  { apiVersion: V3, kind: 'Tier', metadata: { name: 'security' }, spec: { order: 100 } },
  {
    ...{ apiVersion: V3, kind: 'GlobalNetworkPolicy', metadata: { name: 'security.web', labels: { team: 'net' } } },
    spec: { tier: 'security', order: 7, selector: "app == 'web'", types: ['Ingress'], ingress: [{ action: 'Allow', protocol: 'TCP' }] },
  },
  { apiVersion: V3, kind: 'GlobalNetworkSet', metadata: { name: 'offices' }, spec: { nets: ['198.51.100.0/24'] } },
  {
    apiVersion: V3,
    kind: 'HostEndpoint',
    metadata: { name: 'a-eth0' },
    spec: { node: 'a', interfaceName: 'eth0', expectedIPs: ['192.0.2.1'] },
  },
  { apiVersion: V3, kind: 'FelixConfiguration', metadata: { name: 'default' }, spec: { bpfEnabled: false, vxlanPort: 4799 } },
].map(asApiObject)

/** Resolves when its agents run on all nodes. */
export async function plantOurs(old: OldCluster, version: string): Promise<void> {
  await old.addNodes(NODES)
  await applyFile(old, 'manifests/netplane.yaml', version)
  for (const object of OBJECTS) await put(old.client, object)
  await rolled(old)
}

export async function rolled({ client }: OldCluster): Promise<void> {
  await soon(
    'agents run on all nodes',
    async () => {
      const { metadata, status } = await client.get(agentsOf('netplane'))
      const { observedGeneration, updatedNumberScheduled, numberReady } = fieldsOf(status)
      return observedGeneration === metadata['generation'] && updatedNumberScheduled === NODES.length && numberReady === NODES.length
    },
    60_000,
  )
}
