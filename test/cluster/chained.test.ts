// SPDX-License-Identifier: Apache-2.0
/** A cluster whose pods are another plugin's, point to point with a route for each, as providers' are. Layer: test. */
import { expect, test } from 'vitest'
import { listAt, textAt } from '../../lab/raw.ts'
import { Cluster } from '../../testkit/kubernetes/cluster.ts'
import { CHAINED, importImage, install, POLICY_ONLY } from './installed.ts'
import { Namespace } from './namespaces.ts'
import { installKubeProxy, kubeProxyKnows } from './operator/kube-proxy.ts'
import { ask, HTTP_PORT, runPods, urlOf } from './pods.ts'

/** Its list on each node, and the ways between them. */
async function installOther(cluster: Cluster): Promise<void> {
  const nodes = listAt(await cluster.get('nodes'), 'items').map((node) => ({
    name: textAt(node, 'metadata.name') ?? '',
    cidr: textAt(node, 'spec.podCIDR') ?? '',
    address: listAt(node, 'status.addresses').flatMap((entry) => textAt(entry, 'address') ?? [])[0] ?? '',
  }))
  for (const { name, cidr } of nodes) {
    const ipam = { type: 'host-local', dataDir: '/run/host-local', ranges: [[{ subnet: cidr }]], routes: [{ dst: '0.0.0.0/0' }] }
    const list = { cniVersion: '1.0.0', name: 'other', plugins: [{ type: 'ptp', ipam }] }
    const ways = nodes.filter((other) => other.name !== name).map((other) => `ip route add ${other.cidr} via ${other.address}`)
    const script = [...ways, 'cat > /etc/cni/net.d/10-other.conflist'].join('\n')
    await cluster.lab.mustRun(`node/${name}`, ['sh', '-ec', script], { input: JSON.stringify(list) })
  }
}

test(
  'pods of another plugin, those that were there and those that come, have our services and policy',
  async () => {
    await using cluster = await Cluster.up({ name: 'chained' })
    await importImage(cluster)
    await installOther(cluster)
    await cluster.nodesReady()
    await using namespace = await Namespace.make(cluster, 'theirs')
    const { name } = namespace
    const [before] = await runPods(cluster, name, [{ name: 'before', node: 'a', labels: { app: 'web' } }])
    await install(cluster, CHAINED)
    await cluster.nodesReady()
    const [near, far] = await runPods(cluster, name, [
      { name: 'near', node: 'a', labels: { role: 'friend' }, gates: ['netplane.io/Programmed'] },
      { name: 'far', node: 'b' },
    ])
    if (before === undefined || near === undefined || far === undefined) throw new Error('no pods')
    const spec = { selector: { app: 'web' }, ports: [{ port: 80, targetPort: HTTP_PORT }] }
    await cluster.apply({ apiVersion: 'v1', kind: 'Service', metadata: { namespace: name, name: 'web' }, spec })
    const url = urlOf(textAt(await cluster.get('service', 'web', '-n', name), 'spec.clusterIP') ?? '', 80)
    const answers = () => Promise.all([near, far].map((client) => ask(cluster, client, url)))
    await expect.poll(answers).toEqual(['before', 'before'])
    const friends = [{ from: [{ podSelector: { matchLabels: { role: 'friend' } } }] }]
    await cluster.apply({
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
      ...{ metadata: { namespace: name, name: 'friends' }, spec: { podSelector: { matchLabels: { app: 'web' } }, ingress: friends } },
    })
    await expect.poll(answers).toEqual(['before', undefined])
    // and they are theirs still
    expect(near.addresses).toHaveLength(1)
    expect(listAt(await cluster.get('ipamblocks'), 'items')).toEqual([])
  },
  20 * 60_000,
)

/** What of ours is on a node besides programs: files, a device, ways. */
async function marksOn(cluster: Cluster, node: string): Promise<string> {
  const looks = [
    'ls /etc/cni/net.d /opt/cni/bin | grep netplane',
    'ip -br link show type vxlan',
    'ip route show proto 80; ip -6 route show proto 80',
    'ss -Huln sport = 4789',
  ]
  return await cluster.lab.mustRun(`node/${node}`, ['sh', '-c', `${looks.join('; ')}; true`])
}

test(
  'policy alone: pods of another plugin and a kube-proxy that stays, whose services policy sees by their pods [once]',
  async () => {
    await using cluster = await Cluster.up({ name: 'alone' })
    await importImage(cluster)
    await installOther(cluster)
    await installKubeProxy(cluster, 'iptables')
    await cluster.nodesReady()
    await using namespace = await Namespace.make(cluster, 'theirs')
    const { name } = namespace
    const [before] = await runPods(cluster, name, [{ name: 'before', node: 'a', labels: { app: 'web' } }])
    await install(cluster, POLICY_ONLY)
    await cluster.apply({
      ...{ apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration' },
      ...{ metadata: { name: 'default' }, spec: { bpfEnabled: true } },
    })
    const [near, far] = await runPods(cluster, name, [
      { name: 'near', node: 'a', labels: { role: 'friend' }, gates: ['netplane.io/Programmed'] },
      { name: 'far', node: 'b', gates: ['netplane.io/Programmed'] },
    ])
    if (before === undefined || near === undefined || far === undefined) throw new Error('no pods')
    const spec = { selector: { app: 'web' }, ports: [{ port: 80, targetPort: HTTP_PORT }] }
    await cluster.apply({ apiVersion: 'v1', kind: 'Service', metadata: { namespace: name, name: 'web' }, spec })
    const address = textAt(await cluster.get('service', 'web', '-n', name), 'spec.clusterIP') ?? ''
    const url = urlOf(address, 80)
    const answers = () => Promise.all([near, far].map((client) => ask(cluster, client, url)))
    await expect.poll(answers).toEqual(['before', 'before'])
    const policy = (policyName: string, policySpec: object): object => ({
      ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy' },
      ...{ metadata: { namespace: name, name: policyName }, spec: policySpec },
    })
    const to = [{ to: [{ podSelector: { matchLabels: { app: 'web' } } }] }]
    const egress = { podSelector: { matchLabels: { role: 'friend' } }, policyTypes: ['Egress'], egress: to }
    const friends = [{ from: [{ podSelector: { matchLabels: { role: 'friend' } } }] }]
    await cluster.apply(policy('to-web', egress), policy('friends', { podSelector: { matchLabels: { app: 'web' } }, ingress: friends }))
    await expect.poll(answers).toEqual(['before', undefined])
    // in force, and about pods: the same pod by its own address, and nothing else
    expect(await ask(cluster, near, urlOf(before.addresses[0] ?? '', HTTP_PORT))).toBe('before')
    expect(await ask(cluster, near, urlOf(far.addresses[0] ?? '', HTTP_PORT))).toBeUndefined()

    await kubeProxyKnows(cluster, 'iptables', [address])
    for (const node of cluster.nodes) {
      expect(await marksOn(cluster, node)).toBe('')
      expect(textAt(await cluster.get('nodenetwork', node), 'status.dataplane.mode')).toBe('Standard')
    }
    // the node's own processes have kube-proxy's services; what runs on the pod's node is let in
    const asked = await cluster.lab.run('node/a', ['curl', '-s', '--max-time', '2', url])
    expect(asked.stdout).toBe('before')
  },
  20 * 60_000,
)
