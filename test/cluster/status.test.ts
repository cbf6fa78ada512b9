// SPDX-License-Identifier: Apache-2.0
/** What kubectl shows of nodes and pods of a real cluster: what agents write stays beside what kubelets write.
 * Layer: test. */
import { expect, test } from 'vitest'
import { listAt, textAt } from '../../lab/raw.ts'
import { waitFor } from '../../lab/wait.ts'
import { AGNHOST_IMAGE } from '../../testkit/kubernetes/build/images.ts'
import { Namespace } from './namespaces.ts'
import { runPods } from './pods.ts'
import { oneIn } from '../support/steady/matrix.ts'
import { sharedCluster } from './setup.ts'

const cluster = await sharedCluster()
const PROGRAMMED = 'netplane.io/Programmed'

function statusOf(object: unknown, type: string): string | undefined {
  const found = listAt(object, 'status.conditions').find((one) => textAt(one, 'type') === type)
  return found === undefined ? undefined : textAt(found, 'status')
}

test('nodes are Ready, and soon have a network', async () => {
  for (const node of cluster.nodes) {
    expect([node, statusOf(await cluster.get('node', node), 'Ready')]).toEqual([node, 'True'])
    // the kubelet has seen our configuration, which may be before the agent has said so itself
    const network = async (): Promise<unknown> => [node, statusOf(await cluster.get('node', node), 'NetworkUnavailable')]
    await expect.poll(network).toEqual([node, 'False'])
  }
})

test('nodes say to each other where they and their pods are', async () => {
  for (const node of cluster.nodes) {
    const object = await cluster.get('node', node)
    const addresses = listAt(object, 'status.addresses').filter((one) => textAt(one, 'type') === 'InternalIP')
    expect(await cluster.get('nodenetwork', node)).toMatchObject({
      metadata: { name: node, ownerReferences: [{ kind: 'Node', name: node, uid: textAt(object, 'metadata.uid') }] },
      spec: {
        addresses: addresses.map((one) => textAt(one, 'address')),
        podCIDRs: listAt(object, 'spec.podCIDRs'),
        subnets: ['172.31.0.0/24', 'fd00:31::/64'],
      },
    })
  }
})

test('a pod that waits for being programmed gets Ready, and both conditions stay', async () => {
  await using namespace = await Namespace.make(cluster, 'status')
  const pods = [
    { name: 'near', node: 'a', gates: [PROGRAMMED] },
    { name: 'far', node: 'b', gates: [PROGRAMMED] },
  ]
  await runPods(cluster, namespace.name, pods)
  for (const { name } of pods) {
    // the kubelet has written Ready because of ours, and so after it
    const object = await cluster.get('pod', name, '-n', namespace.name)
    expect([name, statusOf(object, PROGRAMMED), statusOf(object, 'Ready')]).toEqual([name, 'True', 'True'])
  }
})

/** Names of them are theirs alone. */
const REFUSED = [
  {
    object: { apiVersion: 'netplane.io/v3', kind: 'GlobalNetworkPolicy', metadata: { name: 'refused-selector' } },
    spec: { selector: "app ==== 'web'", ingress: [{ action: 'Allow' }] },
    reason: 'Refused',
    says: /^spec\.selector: not a selector/,
  },
  {
    object: { apiVersion: 'netplane.io/v3', kind: 'GlobalNetworkPolicy', metadata: { name: 'refused-tier' } },
    spec: { tier: 'nowhere', selector: 'all()', ingress: [{ action: 'Allow' }] },
    reason: 'NoTier',
    says: /nowhere/,
  },
  {
    object: { apiVersion: 'netplane.io/v3', kind: 'HostEndpoint', metadata: { name: 'refused-device' } },
    spec: { node: 'a', interfaceName: 'nowhere0' },
    reason: 'NoDevice',
    says: /^this node has no host device nowhere0: it protects nothing$/,
  },
  {
    object: { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', metadata: { name: 'node.a' } },
    spec: { bpfDataIfacePattern: '(' },
    reason: 'Refused',
    says: /^spec\.bpfDataIfacePattern: .*regular expression/,
  },
  {
    object: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'refused-selection', annotations: { 'netplane.io/backend-selection': 'Best' } },
    },
    spec: { ports: [{ port: 80 }] },
    reason: 'RefusedInPart',
    says: /^metadata\.annotations\['netplane\.io\/backend-selection'\]: must be Random or Maglev; the rest of it is in force$/,
  },
  {
    object: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'refused-protocol' } },
    spec: {
      ports: [
        { name: 'web', port: 80 },
        { name: 'lines', port: 80, protocol: 'SCTP' },
      ],
    },
    reason: 'RefusedInPart',
    says: /^spec\.ports\[1\]\.protocol: SCTP is not supported; the rest of it is in force$/,
  },
  {
    object: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'refused-address' } },
    spec: { ports: [{ port: 80 }], externalIPs: ['192.0.2.77'] },
    beside: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'has-it' } },
    reason: 'RefusedInPart',
    says: /192\.0\.2\.77.*80.* already belongs to Service\/refused-address\/has-it; the rest of it is in force$/,
  },
  {
    object: { apiVersion: 'netplane.io/v3', kind: 'GlobalNetworkPolicy', metadata: { name: 'refused-rule' } },
    spec: { selector: "app == 'nobody'", ingress: [{ action: 'Log' }, { action: 'Allow' }] },
    reason: 'RefusedInPart',
    says: /^spec\.ingress\[0\]\.action: Log is not supported in eBPF mode: the rule is left out/,
  },
  {
    object: { apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata: { name: 'refused-tunnel' } },
    spec: { cidr: '10.250.0.0/24', ipipMode: 'Always' },
    reason: 'RefusedInPart',
    says: /^spec\.ipipMode: is not supported: vxlanMode is; the rest of it is in force$/,
  },
  {
    object: {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'refused-pool', annotations: { 'cni.netplane.io/ipv4pools': '["nowhere"]' } },
    },
    spec: { nodeName: 'a', containers: [{ name: 'main', image: AGNHOST_IMAGE, imagePullPolicy: 'Never' }] },
    reason: 'FailedCreatePodSandBox',
    says: /metadata\.annotations\['cni\.netplane\.io\/ipv4pools'\].*nowhere/,
  },
]

// each kind of reason is in test/agent/status/refusals.test.ts and test/apiserver/agent-status.test.ts
test.each(oneIn(3, REFUSED))(
  'what is refused is described by its own object, by one event for all nodes: $object.metadata.name',
  async (refused) => {
    const { object, beside, spec, reason, says } = refused
    await using namespace = await Namespace.make(cluster, object.metadata.name.replaceAll('.', '-'))
    const isNamespaced = object.apiVersion === 'v1'
    const where = isNamespaced ? namespace.name : 'default'
    const resource = [`${object.kind.toLowerCase()}${isNamespaced ? '' : '.netplane.io'}`, object.metadata.name, '-n', where]
    await using stack = new AsyncDisposableStack()
    // it would be in force for the tests after this one
    stack.defer(async () => {
      await cluster.kubectl(['delete', ...resource, '--wait=false', '--ignore-not-found'])
    })
    for (const one of [beside, object].filter((some) => some !== undefined))
      await cluster.apply({ ...one, metadata: { ...one.metadata, ...(isNamespaced && { namespace: where }) }, spec })
    const fields = `involvedObject.name=${object.metadata.name},reason=${reason}`
    const said = async (): Promise<readonly unknown[] | undefined> => {
      const all = listAt(await cluster.get('events', '-n', where, '--field-selector', fields), 'items')
      return all.length > 0 ? all : undefined
    }
    const events = await waitFor(said, { timeoutMs: 60_000, everyMs: 500 })
    expect(events?.map((event) => textAt(event, 'message'))).toEqual([expect.stringMatching(says)])
    expect(await cluster.kubectl(['describe', ...resource])).toMatch(new RegExp(`Warning +${reason}`))
  },
)
