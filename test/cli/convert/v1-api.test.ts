// SPDX-License-Identifier: Apache-2.0
/** Files of the v1 API as netplane.io/v3. Layer: test. */
import { load } from 'js-yaml'
import { expect, test } from 'vitest'
import { convertObject } from '../../../cli/convert/command.ts'

const OPTIONS = { namespace: 'default', namesOnly: false }

function convert(kind: string, metadata: string, spec = '{}') {
  return convertObject(load(`{apiVersion: v1, kind: ${kind}, metadata: ${metadata}, spec: ${spec}}`), OPTIONS)
}

function objectOf(kind: string, metadata: string, spec?: string): unknown {
  const { object, rejected } = convert(kind, metadata, spec)
  expect(rejected).toEqual([])
  return object
}

test('a policy is one of the whole cluster, with tags as labels without a value', () => {
  const spec = `{order: 100, selector: "netplane/k8s_ns == 'shop' && has(k8s_ns/label/team)", types: [ingress, EGRESS],
    ingress: [
      {action: allow, protocol: tcp, source: {net: 10.1.2.3/8, nets: [192.0.2.1], tag: web, selector: "a == 'b'", notTag: x, notSelector: has(y)}},
      {action: next-tier}],
    egress: [{action: deny, destination: {tag: db, notNet: "fd00::/8", notPorts: [80, "1000:2000"]}, protocol: udp}]}`
  expect(objectOf('policy', '{name: Shop.Web, annotations: {a: b}}', spec)).toEqual({
    apiVersion: 'netplane.io/v3',
    kind: 'GlobalNetworkPolicy',
    metadata: { name: 'shop-web', annotations: { a: 'b' } },
    spec: {
      order: 100,
      selector: '(netplane.io/namespace == "shop" && has(pcns.team))',
      types: ['Ingress', 'Egress'],
      ingress: [
        {
          action: 'Allow',
          protocol: 'tcp',
          source: {
            nets: ['192.0.2.1/32', '10.0.0.0/8'],
            selector: '(a == "b" && web == "")',
            // neither of the two: a packet with one of them is another's
            notSelector: '(has(y) || x == "")',
          },
        },
        { action: 'Pass' },
      ],
      egress: [
        { action: 'Deny', protocol: 'udp', destination: { notNets: ['fd00::/8'], selector: 'db == ""', notPorts: [80, '1000:2000'] } },
      ],
    },
  })
})

test.each(['doNotTrack', 'preDNAT'])('a policy with %s is for what passes through as well', (flag) => {
  expect(objectOf('policy', '{name: p}', `{${flag}: true, ingress: [{action: deny}]}`)).toMatchObject({
    spec: { [flag]: true, applyOnForward: true },
  })
})

test('a profile has its labels and tags as labels of its endpoints', () => {
  expect(objectOf('profile', '{name: k8s_ns.shop, labels: {a: b}, tags: [web]}', '{egress: [{action: allow}]}')).toMatchObject({
    kind: 'Profile',
    metadata: { name: 'kns.shop' },
    spec: { egress: [{ action: 'Allow' }], labelsToApply: { a: 'b', web: '' } },
  })
})

test('a host endpoint has the name of its node in front', () => {
  const spec = '{interfaceName: eth0, expectedIPs: [192.0.2.1], profiles: [k8s_ns.shop, p], ports: [{name: dns, port: 53, protocol: udp}]}'
  expect(objectOf('hostEndpoint', '{name: eth0, node: Node1, labels: {a: b}}', spec)).toEqual({
    apiVersion: 'netplane.io/v3',
    kind: 'HostEndpoint',
    metadata: { name: 'node1.eth0', labels: { a: 'b' } },
    spec: {
      node: 'node1',
      interfaceName: 'eth0',
      expectedIPs: ['192.0.2.1'],
      profiles: ['kns.shop', 'p'],
      ports: [{ name: 'dns', port: 53, protocol: 'UDP' }],
    },
  })
})

test('a pool is named after its range', () => {
  expect(
    objectOf('ipPool', '{cidr: 10.1.0.0/16}', '{nat-outgoing: true, disabled: true, ipip: {enabled: false, mode: always}}'),
  ).toMatchObject({
    metadata: { name: '10-1-0-0-16' },
    spec: { cidr: '10.1.0.0/16', natOutgoing: true, disabled: true, ipipMode: 'Never' },
  })
  expect(objectOf('ipPool', '{cidr: "fd00:1::/48"}')).toMatchObject({ metadata: { name: 'fd00-1-48' } })
})

test.each([
  ['{enabled: true}', 'Always'],
  ['{enabled: true, mode: always}', 'Always'],
  ['{enabled: true, mode: cross-subnet}', 'CrossSubnet'],
])('a pool with IP in IP as %s has the mode %s, of which a warning says that it is not obeyed', (ipip, mode) => {
  const { object, rejected, inPart } = convert('ipPool', '{cidr: 10.1.0.0/16}', `{ipip: ${ipip}}`)
  expect(object).toMatchObject({ spec: { ipipMode: mode } })
  expect({ rejected, inPart }).toMatchObject({ rejected: [{ path: 'spec.ipipMode' }], inPart: true })
})

test.each([
  ['kind: bgpPeer', 'kind', 'BGP is not supported'],
  ['kind: node', 'kind', 'an object of Kubernetes'],
  ['kind: workloadEndpoint', 'kind', 'by themselves'],
  ['kind: Pod', 'kind', 'there is no such kind'],
  ['kind: policy, metadata: {name: p, tier: x}', 'metadata.tier', 'is not a field'],
  ['kind: policy', 'metadata.name', 'is missing'],
  ['kind: policy, spec: {ingress: [{source: {tags: [x]}}]}', 'spec.ingress[0].source.tags', 'is not a field'],
  ['kind: policy, spec: {egress: [{destination: {net: x}}]}', 'spec.egress[0].destination.net', 'must be an IP'],
  ['kind: policy, metadata: {name: p}, spec: {egress: [{}]}', 'spec.egress[0].action', 'is missing'],
  ['kind: policy, spec: {selector: "a =="}', 'spec.selector', ''],
  ['kind: profile, metadata: {name: p, labels: {web: x}, tags: [web]}', 'metadata.tags[0]', 'is a label as well'],
  ['kind: hostEndpoint, metadata: {name: p}', 'metadata.node', 'is missing'],
])('{%s} is refused at %s: %s', (text, path, reason) => {
  const { rejected } = convertObject(load(`{apiVersion: v1, ${text}}`), OPTIONS)
  expect(rejected).toMatchObject([{ path, reason: expect.stringContaining(reason) as string }])
})
