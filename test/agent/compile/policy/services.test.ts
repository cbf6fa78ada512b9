// SPDX-License-Identifier: Apache-2.0
/** Services that rules speak of, and those that none does: slices that come, change and go. Layer: test. */
import { beforeEach, expect, test } from 'vitest'
import { parseAddr, parsePort } from '#lib/base/ip.ts'
import { endpointState, type EndpointSlice } from '#lib/model/endpoint-slice.ts'
import { ANYWHERE, type Policy, type Profile, type Rule, ruleOf } from '#lib/model/policy.ts'
import { ALL } from '#lib/model/selector/selector.ts'
import type { Pod } from '#lib/model/pod.ts'
import { Follower } from './follower.ts'

const CLIENT: Pod = {
  kind: 'Pod',
  namespace: 'x',
  name: 'client',
  nodeName: 'n1',
  labels: new Map(),
  serviceAccount: 'default',
  ports: [],
  hostNetwork: false,
  phase: 'Running',
  terminating: false,
  podIPs: [parseAddr('10.0.0.1')],
}

function slice(service: string, ...addrs: readonly string[]): EndpointSlice {
  return {
    kind: 'EndpointSlice',
    namespace: 'x',
    name: service,
    service,
    addressType: 'IPv4',
    ports: [{ name: 'p', protocol: 'TCP', port: parsePort(80) }],
    endpoints: addrs.map((addr) => ({
      addr: parseAddr(addr),
      pod: 0,
      state: endpointState(true, true, false),
      nodeName: undefined,
      zone: undefined,
      hints: undefined,
    })),
  }
}

/** Egress to this service; without one to no address. */
function rules(service: string | undefined): readonly Rule[] {
  return service === undefined ? [] : [ruleOf(0, { destination: { ...ANYWHERE, services: [{ namespace: 'x', name: service }] } })]
}

function policy(service: string | undefined): Policy {
  const of = { kind: 'GlobalNetworkPolicy' as const, namespace: '', name: 'p', tier: 'default', order: 1, subject: ALL }
  return { ...of, ingress: undefined, egress: rules(service), scope: 'normal', staged: undefined }
}

let follower: Follower
beforeEach(() => {
  follower = new Follower('n1')
  follower.put([CLIENT, slice('web', '192.0.2.1'), slice('other', '192.0.2.2')])
})

function action(to: string): string {
  const packet = { src: parseAddr('10.0.0.1'), dst: parseAddr(to), protocol: 6, sport: 40_000, dport: 80, icmp: undefined }
  return follower.action(packet, { direction: 'egress' })
}

function actions(): string {
  return ['192.0.2.1', '192.0.2.2', '192.0.2.3'].map(action).join(' ')
}

test('endpoints of a service that a policy names are followed, whichever policy named it before', () => {
  follower.put([policy('web')])
  expect(actions()).toBe('allow deny deny')
  follower.put([slice('web', '192.0.2.3')])
  expect(actions()).toBe('deny deny allow')
  follower.put([], [slice('web')])
  expect(actions()).toBe('deny deny deny')
  follower.put([policy('other')])
  expect(actions()).toBe('deny allow deny')
  // no policy names it by now
  follower.put([slice('web', '192.0.2.1')])
  expect(actions()).toBe('deny allow deny')
  follower.put([policy('web')])
  expect(actions()).toBe('allow deny deny')
  follower.put([slice('web', '192.0.2.1', '192.0.2.3')])
  expect(actions()).toBe('allow deny allow')
})

test('endpoints of a service that a profile names are followed', () => {
  const profile: Profile = { kind: 'Profile', namespace: '', name: 'kns.x', labels: new Map(), ingress: [], egress: rules('web') }
  follower.put([profile])
  expect(actions()).toBe('allow deny deny')
  follower.put([slice('web', '192.0.2.2')])
  expect(actions()).toBe('deny allow deny')
})

test('slices of services that no policy or profile names are no work', () => {
  follower.put([policy('web')])
  expect(follower.change([slice('other', '192.0.2.9')])).toEqual([])
})
