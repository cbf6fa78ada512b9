// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import type { Problem } from '#lib/store/source.ts'
import { endpointRefusals, firewallRefusals, MOST, refusalsOf, type RefusedNow, type WrongPolicy } from '#agent/status/refusals.ts'

function problem(ref: string, path: string, inPart?: true): Problem {
  return { place: undefined, rejected: { ref, path, reason: 'must be a port' }, ...(inPart && { inPart }) }
}

const NOTHING: RefusedNow = { node: 'n1', refused: new Map(), policies: new Map() }

function of(refused: Readonly<Record<string, readonly Problem[]>>, policies: Readonly<Record<string, WrongPolicy>> = {}) {
  return textsOf({ ...NOTHING, refused: new Map(Object.entries(refused)), policies: new Map(Object.entries(policies)) })
}

function textsOf(now: RefusedNow) {
  return refusalsOf(now).map(({ object: { apiVersion, kind, namespace, name }, reason, message, own }) =>
    [[apiVersion, kind, namespace, name].filter((part) => part !== undefined).join(' '), reason, message, ...(own ? ['own'] : [])].join(
      ' | ',
    ),
  )
}

describe('what is refused', () => {
  test('is an event on the object that the API server has, with field and reason', () => {
    expect(of({ api: [problem('Service/shop/web', 'spec.ports[0].port'), problem('Node/n2', '')] })).toEqual([
      'v1 Node n2 | Refused | must be a port',
      'v1 Service shop web | Refused | spec.ports[0].port: must be a port',
    ])
  })

  test('of policies is an event with what became of them', () => {
    const wrong = { reason: 'spec.x: must be a port' }
    const refs = ['last-good', 'closed', 'refused'].map((state) => [`KubernetesNetworkPolicy/shop/${state}`, state] as const)
    const problems = refs.map(([ref]) => problem(ref, 'spec.x'))
    const policies = Object.fromEntries(refs.map(([ref, state]) => [ref, { state, ...wrong }]))
    expect(of({ api: [...problems, problem('Tier/t', 'spec.y', true)] }, policies)).toEqual([
      'netplane.io/v3 Tier t | RefusedInPart | spec.y: must be a port; the rest of it is in force',
      'networking.k8s.io/v1 NetworkPolicy shop closed | Refused | spec.x: must be a port; closed for all that it selects, as no good version of it is known',
      'networking.k8s.io/v1 NetworkPolicy shop last-good | Refused | spec.x: must be a port; the last good version stays in force',
      'networking.k8s.io/v1 NetworkPolicy shop refused | Refused | spec.x: must be a port; nothing of it is in force',
    ])
  })

  test('is an event for a policy of a tier that does not exist, too', () => {
    const policies = {
      'GlobalNetworkPolicy/a': { state: 'no-tier', reason: 'there is no Tier x' },
      'Tier/t': { state: 'in-part', reason: '' },
    }
    expect(of({}, policies)).toEqual(['netplane.io/v3 GlobalNetworkPolicy a | NoTier | there is no Tier x'])
  })

  test('is an event for a policy whose namespace has no room on this node, too', () => {
    const policies = { 'KubernetesNetworkPolicy/shop/web': { state: 'no-room', reason: 'closed for all that it selects here' } }
    expect(of({}, policies)).toEqual(['networking.k8s.io/v1 NetworkPolicy shop web | NoRoom | closed for all that it selects here | own'])
  })

  test('is an event of this node alone where no other node can know it', () => {
    const api = [problem('FelixConfiguration/node.n1', 'spec.x'), problem('FelixConfiguration/node.n2', 'spec.x'), problem('Pod/a/b', '')]
    expect(of({ api, compiler: [problem('Pod/a/c', ''), problem('Service/a/c', '')] }).filter((text) => text.endsWith('own'))).toEqual([
      'netplane.io/v3 FelixConfiguration node.n1 | Refused | spec.x: must be a port | own',
      'v1 Pod a c | Refused | must be a port | own',
    ])
  })

  test('is an event of this node alone for host endpoints without a device or that let nothing leave, and endpoints with too many rules', () => {
    const strays = new Map([['HostEndpoint/eth9', 'this node has no host device eth9']])
    const cuts = new Map([
      ['Pod/shop/web', 'ingress longer than all'],
      ['HostEndpoint/n1', 'egress longer than all'],
    ])
    const silent = new Map([['HostEndpoint/all', 'no policy lets it']])
    expect(textsOf({ ...NOTHING, strays, cuts, silent })).toEqual([
      'netplane.io/v3 HostEndpoint all | NothingLeaves | no policy lets it | own',
      'netplane.io/v3 HostEndpoint eth9 | NoDevice | this node has no host device eth9: it protects nothing | own',
      'netplane.io/v3 HostEndpoint n1 | TooManyRules | egress longer than all | own',
      'v1 Pod shop web | TooManyRules | ingress longer than all | own',
    ])
  })

  test('is an event on the Node where no object is at fault', () => {
    expect(of({ configuration: [problem('environment', 'FELIX_X'), problem('file /a/b.yaml', 'x')] })).toEqual([
      'v1 Node n1 | Refused | environment: FELIX_X: must be a port | own',
      'v1 Node n1 | Refused | file /a/b.yaml: x: must be a port | own',
    ])
  })

  test('is an event once an object, up to a limit; of the rest their number', () => {
    expect(of({ api: [problem('Pod/a/b', ''), problem('Pod/a/b', '')] })).toHaveLength(1)
    const many = (count: number) => of({ api: Array.from({ length: count }, (_, at) => problem(`Service/a/s${at}`, '')) })
    const all = many(MOST)
    expect([all.length, all.filter((text) => text.includes('Node'))]).toEqual([MOST, []])
    expect(many(1000).slice(MOST)).toEqual([
      `v1 Node n1 | Refused | refused besides those with events of their own: ${1000 - MOST}; the agent's log has all of them (object.rejected and policy.*) | own`,
    ])
  })

  test('has one warning for the rest, whatever their number', () => {
    const keys = (count: number) => {
      const problems = Array.from({ length: count }, (_, at) => problem(`Service/a/s${at}`, ''))
      return refusalsOf({ ...NOTHING, refused: new Map([['api', problems]]) }).map(({ key }) => key)
    }
    expect(keys(MOST + 2).at(-1)).toBe(keys(MOST + 1).at(-1))
  })
})

test('what other programs’ rules do is a warning about the node, one for all of them, and none when they do nothing', () => {
  expect(firewallRefusals('n1', [])).toEqual([])
  const [one, ...others] = firewallRefusals('n1', ['chain FORWARD drops pods', 'ufw drops the tunnel'])
  expect(others).toEqual([])
  expect(one).toMatchObject({
    object: { apiVersion: 'v1', kind: 'Node', name: 'n1' },
    reason: 'ForeignFirewall',
    message: 'chain FORWARD drops pods; ufw drops the tunnel',
    own: true,
  })
})

test('an API server that is asked by its service is a warning about the node as well', () => {
  expect(endpointRefusals('n1', undefined)).toEqual([])
  const [one] = endpointRefusals('n1', 'no config map')
  const object = { apiVersion: 'v1', kind: 'Node', name: 'n1' }
  expect(one).toMatchObject({ object, reason: 'NoDirectEndpoint', message: 'no config map', own: true })
})
