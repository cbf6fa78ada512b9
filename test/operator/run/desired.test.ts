// SPDX-License-Identifier: Apache-2.0
/** What an Installation may not ask for. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { readInstallation } from '#operator/run/desired.ts'

function read(spec: object) {
  const installation = asApiObject({ apiVersion: 'operator.netplane.io/v1', kind: 'Installation', metadata: { name: 'default' }, spec })
  return readInstallation(installation, { provider: 'Generic', hasKubeProxy: false, installed: undefined }).computed
}

test.each([
  [
    { cni: { type: 'Chained' }, netplaneNetwork: { mtu: 1400 } },
    "spec.netplaneNetwork.mtu: is the other plugin's where spec.cni.type is Chained; it is 1400",
  ],
  [
    { cni: { type: 'None' }, netplaneNetwork: { hostPorts: 'Disabled' } },
    'spec.netplaneNetwork.hostPorts: is the other plugin\'s where spec.cni.type is None; it is "Disabled"',
  ],
  [
    { nodeUpdateStrategy: { maxUnavailable: '' } },
    'spec.nodeUpdateStrategy.maxUnavailable: must be a number of nodes from 1, or a percentage like 10%; it is ""',
  ],
  [
    { nodeUpdateStrategy: { maxUnavailable: 0 } },
    'spec.nodeUpdateStrategy.maxUnavailable: must be a number of nodes from 1, or a percentage like 10%; it is 0',
  ],
  [
    { netplaneNetwork: { ipPools: [{ cidr: '10.0.0.0/16' }, { cidr: '10.0.0.0/99' }] } },
    'spec.netplaneNetwork.ipPools[1].cidr: must be an IP prefix, like 10.0.0.0/24; it is "10.0.0.0/99"',
  ],
  [
    { netplaneNetwork: { ipPools: [{ cidr: '10.1.0.5/24' }] } },
    'spec.netplaneNetwork.ipPools[0].cidr: must begin with the first address of the range, as 10.1.0.0/24; it is "10.1.0.5/24"',
  ],
  [
    { netplaneNetwork: { ipPools: [{ cidr: 'fd00::1/64' }] } },
    'spec.netplaneNetwork.ipPools[0].cidr: must begin with the first address of the range, as fd00::/64; it is "fd00::1/64"',
  ],
])('%j is refused, with the value that it has', (spec, message) => {
  expect(() => read(spec)).toThrow(message)
})

test('host ports and MTU of our own pods may be chosen', () => {
  expect(read({ netplaneNetwork: { mtu: 1400, hostPorts: 'Disabled' } })).toMatchObject({ mtu: 1400, hostPorts: false })
  expect(read({ cni: { type: 'Chained' }, netplaneNetwork: { hostPorts: 'Enabled' } })).toMatchObject({ hostPorts: true })
})
