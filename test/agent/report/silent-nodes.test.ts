// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { silentNodes } from '#agent/report/silent-nodes.ts'
import { snapshotOf, v3 } from '../../support/build.ts'

function endpoint(
  name: string,
  of: { readonly node?: string; readonly interfaceName?: string; readonly profiles?: readonly string[] } = {},
) {
  return { ...v3('HostEndpoint', name, { node: 'n1', interfaceName: '*', ...of }), metadata: { name, labels: { host: name } } }
}

function policy(types: readonly string[], of: object = {}) {
  return v3('GlobalNetworkPolicy', 'one', { selector: 'host == "all"', types, ...of })
}

const silent = (...manifests: Parameters<typeof snapshotOf>[0]) => [...silentNodes(snapshotOf(manifests), 'n1').keys()]
const ALL = ['HostEndpoint/all']

test('a host endpoint * that policies of type Ingress alone select lets the node send nothing', () => {
  expect(silent(endpoint('all'), policy(['Ingress']))).toEqual(ALL)
  expect([...silentNodes(snapshotOf([endpoint('all')]), 'n1').values()].join()).toMatch(/no policy of type Egress .* probes/)
})

test.each([
  ['a policy of type Egress selects it, whatever its rules are', [endpoint('all'), policy(['Ingress', 'Egress'])]],
  ['it has the profile of automatic ones', [endpoint('all', { profiles: ['netplane-default-allow'] }), policy(['Ingress'])]],
  ['a profile of it has rules', [endpoint('all', { profiles: ['own'] }), v3('Profile', 'own', { egress: [{ action: 'Allow' }] })]],
  ['it is of some devices', [endpoint('all', { interfaceName: 'eth0' }), policy(['Ingress'])]],
  ['it is of another node', [endpoint('all', { node: 'n2' }), policy(['Ingress'])]],
  ['another one is the node’s', [endpoint('a', { profiles: ['netplane-default-allow'] }), endpoint('all')]],
])('but not where %s', (_, manifests) => {
  expect(silent(...manifests)).toEqual([])
})

test.each([
  ['a profile that is not there', [endpoint('all', { profiles: ['none'] })]],
  ['a policy for what is forwarded from services', [endpoint('all'), policy(['Ingress'], { preDNAT: true, applyOnForward: true })]],
  ['a staged policy', [endpoint('all'), v3('StagedGlobalNetworkPolicy', 'staged', { selector: 'all()', types: ['Egress'] })]],
  ['a policy of others', [endpoint('all'), policy(['Egress'], { selector: 'host == "none"' })]],
])('%s lets nothing leave either', (_, manifests) => {
  expect(silent(...manifests)).toEqual(ALL)
})
