// SPDX-License-Identifier: Apache-2.0
/** What a fresh installation finds of kube-proxy. Layer: test. */
import { expect, test } from 'vitest'
import { ApiError } from '#lib/api/errors.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { ClusterFactsReader } from '#operator/run/cluster-facts.ts'
import { proxyCommands } from '#operator/switch/proxy-command.ts'

/** Of an Installation in a cluster of this version, with these pods of kube-proxy and no DaemonSet of it. */
async function computed(gitVersion: string, spec: object = {}, pods: readonly ApiObject[] = []) {
  const reader = new ClusterFactsReader({
    get: () => Promise.reject(new ApiError({ status: 404, reason: 'NotFound', message: 'not found' })),
    list: () => Promise.resolve([...pods]),
    request: () => Promise.resolve({ gitVersion }),
  })
  const installation = asApiObject({ apiVersion: 'operator.netplane.io/v1', kind: 'Installation', metadata: { name: 'default' }, spec })
  const signal = new AbortController().signal
  return computeInstallation(installationSpec.read(spec), await reader.read({ installation, nodes: [], isInstalled: false, signal }))
}

const pod = asApiObject({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'kube-proxy-a' }, spec: { nodeName: 'a' } })

test.each([
  { what: 'a cluster without kube-proxy', version: 'v1.34.4', mode: 'BPF' },
  { what: 'a kube-proxy of static pods', version: 'v1.34.4+rke2r1', pods: [pod], mode: 'Standard' },
  { what: 'RKE2 without its pods', version: 'v1.34.4+rke2r1', mode: 'BPF' },
  { what: 'k3s, which may run it in its own process', version: 'v1.34.4+k3s1', mode: 'Standard' },
  { what: 'MKE, which may run it outside Kubernetes', version: 'v1.34.4', spec: { provider: 'MKE' }, mode: 'Standard' },
  { what: 'k3s where BPF is asked for', version: 'v1.34.4+k3s1', spec: { netplaneNetwork: { linuxDataplane: 'BPF' } }, mode: 'BPF' },
])('$what is $mode', async ({ version, spec, pods, mode }) => {
  expect((await computed(version, spec, pods)).linuxDataplane).toBe(mode)
})

test('the command of k3s is its own', async () => {
  expect(proxyCommands(await computed('v1.34.4+k3s1')).stop).toContain('/etc/rancher/k3s/config.yaml')
  expect(proxyCommands(await computed('v1.34.4')).stop).toContain('patch daemonset kube-proxy')
})
