// SPDX-License-Identifier: Apache-2.0
/** What --print-desired shows: text that people read, for every kind of row. Layer: test. */
import { expect, test } from 'vitest'
import { NO_IDENTITY_OF_OURS } from '#agent/compile/policy/identities/identities.ts'
import { formatDesired } from '#agent/commands/format-desired.ts'
import { formatPolicy } from '#agent/commands/format-policy.ts'
import { node, pod, pool, service, slice } from '../../support/build.ts'
import { World } from '../compile/world.ts'

test('every kind of row is readable', () => {
  const world = new World(
    node('n1', { addresses: ['192.168.0.1'] }),
    node('n2', { addresses: ['192.168.0.2'], podCIDRs: ['10.0.2.0/24'] }),
    pool('pods', { cidr: '10.0.0.0/16', vxlanMode: 'Always' }),
    service('web', {
      annotations: { 'netplane.io/backend-selection': 'Maglev' },
      ports: [{ port: 53, protocol: 'UDP', nodePort: 30053 }],
    }),
    slice('web-1', { ports: [{ port: 53, protocol: 'UDP' }], endpoints: [{ addr: '10.0.2.1', node: 'n2' }] }),
  )
  const printed: unknown = JSON.parse(formatDesired(world.compile(), new Map()))
  const list = expect.stringMatching(/^[0-9a-f]{16}$/) as string
  expect(printed).toMatchObject({
    node: { knobs: { nodeV4: '192.168.0.1', overlay: true }, routes: [{ cidr: '10.0.2.0/24', via: '192.168.0.2', overlay: true }] },
    rows: {
      'IPPool/pods': [{ table: 'ranges', key: { set: '0000000000000001', cidr: '10.0.0.0/16' } }],
      'Node/n2': [
        { table: 'routes', key: { cidr: '10.0.2.0/24' }, value: { node: '192.168.0.2' } },
        { table: 'addrs', key: { addr: '192.168.0.2' } },
      ],
      'Service/default/web': [
        { table: 'frontends', key: { addr: '0.0.0.0', port: 30053 }, value: { inside: { list, count: 1 }, outside: { list, count: 1 } } },
        { table: 'frontends', key: { addr: '10.96.0.1' } },
        { table: 'backends', key: { list, slot: 0 }, value: { addr: '10.0.2.1', node: '192.168.0.2' } },
        { table: 'live', key: { list, addr: '10.0.2.1', port: 53 }, value: { slot: 0 } },
        { table: 'maglev', key: { list }, value: { digest: list } },
        { table: 'addrs', key: { addr: '10.96.0.1' } },
      ],
    },
  })
})

test('policy as well: rules by name, ports as ranges', () => {
  const metadata = (name: string): object => ({ name, namespace: 'default' })
  const world = new World(node('n1', { addresses: ['192.168.0.1'] }), pod('web', { node: 'n1', ips: ['10.0.1.1'] }), {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadata('web'),
    spec: {
      podSelector: {},
      policyTypes: ['Ingress'],
      ingress: [{ from: [{ ipBlock: { cidr: '10.9.0.0/16' } }], ports: [{ port: 80 }] }],
    },
  })
  const desired = world.compile()
  const printed: unknown = JSON.parse(formatDesired(desired, world.compiler.policy.ruleNames))
  const nobody = NO_IDENTITY_OF_OURS.id
  const id = expect.stringMatching(/^[0-9a-f]{16}$/) as string
  expect(printed).toMatchObject({
    policy: {
      nets: { '10.9.0.0/16': expect.any(Number) as number },
      endpoints: { '10.0.1.1': { identity: nobody, ingress: id, egress: '0000000000000000' }, '192.168.0.1': { identity: nobody } },
    },
  })
  expect(Object.values(formatPolicy(desired.policy, world.compiler.policy.ruleNames).sets)).toEqual([
    {
      rules: ['allow KubernetesNetworkPolicy/default/web ingress 0', 'deny Tier/default ingress end'],
      classes: expect.objectContaining({ 'peer unknown': '1' }) as object,
      ports: { TCP: '0-79: 1, 80: 0 1, 81-65535: 1', others: '0-65535: 1' },
    },
  ])
})
