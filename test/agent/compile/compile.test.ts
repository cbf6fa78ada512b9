// SPDX-License-Identifier: Apache-2.0
/** Changes in, changes out: as much as changed. Layer: test. */
import { describe, expect, test } from 'vitest'
import { parseCidr } from '#lib/base/ip.ts'
import { MOST_TOLD } from '#lib/base/result.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import { node, nodeNetwork, pod, pool, service, slice } from '../../support/build.ts'
import type { Manifest } from '../../support/build.ts'
import { showChange, showFragment } from '../../support/show.ts'
import { cluster, World } from './world.ts'

const vethA = workloadInterface({ namespace: 'default', name: 'a' })

test('the first time it is everything', () => {
  const world = new World(...cluster)
  const change = world.compile()
  expect(change.complete).toBe(true)
  expect(showChange(change)).toBe(`Node/n1
  ::1 self node-ports
  127.0.0.1 self node-ports
  192.168.0.1 self node-ports
Node/n2
  192.168.0.2 node
Pod/default/a
  10.0.1.1 pod ${vethA}
Service/default/other
  10.96.0.2:80/TCP -> #1 of 0
  10.96.0.2 service
Service/default/web
  10.96.0.1:80/TCP -> #1 of 2
  #1[0] 10.0.1.1:8080
  #1[1] 10.0.2.1:8080 at 192.168.0.2
  #1 own[0] 10.0.1.1:8080
  10.96.0.1 service
node 192.168.0.1 ::
  tunnel vni 20048 port 4789
  connect-time tcp
  workload ${vethA} default/a
  host 192.168.0.1
  route 10.0.2.0/24 via 192.168.0.2
  sysctl net/ipv4/ip_forward=1
  sysctl net/ipv6/conf/all/forwarding as it was`)
})

describe('afterwards it is what changed:', () => {
  test.each<[string, (world: World) => void, string[]]>([
    ['nothing', () => undefined, []],
    [
      'a slice',
      (world) => {
        world.put(slice('web-1', { endpoints: ['10.0.1.1'] }))
      },
      ['Service/default/web'],
    ],
    [
      'a slice that changes its service',
      (world) => {
        world.put(slice('web-1', { service: 'other' }))
      },
      ['Service/default/other', 'Service/default/web'],
    ],
    [
      'a service',
      (world) => {
        world.put(service('web', { ports: [{ port: 81 }] }))
      },
      ['Service/default/web'],
    ],
    [
      'a pod of ours',
      (world) => {
        world.put(pod('c', { node: 'n1', ips: ['10.0.1.2'] }))
      },
      ['Pod/default/c', 'node'],
    ],
    [
      'a pod of ours that gets its address',
      (world) => {
        world.put(pod('a', { node: 'n1', ips: ['10.0.1.9'] }))
      },
      ['Pod/default/a'],
    ],
    [
      'a pod of ours that ends',
      (world) => {
        world.put(pod('a', { node: 'n1', ips: ['10.0.1.1'], phase: 'Failed' }))
      },
      ['Pod/default/a', 'node'],
    ],
    [
      'another node’s pod',
      (world) => {
        world.put(pod('d', { node: 'n2', ips: ['10.0.2.2'] }))
      },
      [],
    ],
    [
      'a node’s range',
      (world) => {
        world.put(node('n2', { addresses: ['192.168.0.2'], podCIDRs: ['10.0.9.0/24'] }))
      },
      ['Node/n2', 'node'],
    ],
    [
      'a node’s address',
      (world) => {
        world.put(node('n2', { addresses: ['192.168.0.9'], podCIDRs: ['10.0.2.0/24'] }))
      },
      ['Node/n2', 'Service/default/web', 'node'],
    ],
    [
      'a new node without pods',
      (world) => {
        world.put(node('n3', { addresses: ['192.168.0.3'] }))
      },
      ['Node/n3'],
    ],
    [
      'a node that goes',
      (world) => {
        world.drop(node('n2'))
      },
      ['Node/n2', 'Service/default/web', 'node'],
    ],
    [
      'our addresses',
      (world) => {
        world.put(node('n1', { addresses: ['192.168.0.1', '192.168.0.9'], podCIDRs: ['10.0.1.0/24'] }))
      },
      ['Node/n1', 'Service/default/other', 'Service/default/web', 'server/api', 'node'],
    ],
    [
      'our zone',
      (world) => {
        world.put(node('n1', { addresses: ['192.168.0.1'], podCIDRs: ['10.0.1.0/24'], zone: 'east' }))
      },
      ['Node/n1', 'Service/default/other', 'Service/default/web'],
    ],
    [
      'our subnets',
      (world) => {
        world.put(nodeNetwork('n1', { subnets: ['192.168.0.0/24'] }))
      },
      ['Node/n1', 'Node/n2'],
    ],
    [
      'our blocks',
      (world) => {
        world.put(nodeNetwork('n1', { blocks: ['10.7.0.0/26'] }))
      },
      ['Node/n1', 'Node/n2', 'Pod/default/a'],
    ],
    [
      "another node's, which its Node does not say",
      (world) => {
        world.put(nodeNetwork('n2', { addresses: ['192.168.0.9'], blocks: ['10.7.0.0/26'] }))
      },
      ['Node/n2', 'node'],
    ],
    [
      'a pool',
      (world) => {
        world.put(pool('pods', { cidr: '10.0.0.0/16', natOutgoing: true, vxlanMode: 'Always' }))
      },
      ['IPPool/pods', 'Node/n1', 'Node/n2', 'Pod/default/a', 'node'],
    ],
    [
      'settings of services',
      (world) => {
        const services = { ...world.input.settings.services, backendSelection: 'Maglev' as const }
        world.input = { ...world.input, settings: { ...world.input.settings, services } }
      },
      ['Service/default/other', 'Service/default/web'],
    ],
    [
      'settings of nodes',
      (world) => {
        const nodes = { ...world.input.settings.nodes, nodePortAddresses: [parseCidr('10.0.0.0/8')] }
        world.input = { ...world.input, settings: { ...world.input.settings, nodes } }
      },
      ['Node/n1', 'Node/n2', 'server/api', 'node'],
    ],
    [
      'settings',
      (world) => {
        const knobs = { ...world.input.settings.knobs, connectTcp: false }
        world.input = { ...world.input, settings: { ...world.input.settings, knobs } }
      },
      ['node'],
    ],
    [
      'the veths’ prefix',
      (world) => {
        world.input = { ...world.input, settings: { ...world.input.settings, interfacePrefix: 'veth' } }
      },
      ['Pod/default/a', 'node'],
    ],
  ])('%s', (_, change, owners) => {
    const world = new World(...cluster)
    world.compile()
    change(world)
    expect(world.owners()).toEqual(owners)
    expect(world.owners()).toEqual([])
  })

  test('an object that is gone has an empty fragment', () => {
    const world = new World(...cluster)
    world.compile()
    world.drop(service('web'), pod('a'))
    expect(world.compile()).toMatchObject({
      complete: false,
      fragments: [
        { owner: 'Service/default/web', rows: [] },
        { owner: 'Pod/default/a', rows: [] },
      ],
    })
  })
})

describe('what two objects want', () => {
  test('a cluster address cannot be taken by naming it as an external one', () => {
    const world = new World(service('web'), service('a-thief', { clusterIPs: ['10.96.0.9'], spec: { externalIPs: ['10.96.0.1'] } }))
    const services = world.compile().fragments.filter(({ owner }) => owner.startsWith('Service/'))
    expect(services.map(showFragment).sort()).toEqual([
      'Service/default/a-thief\n  10.96.0.9:80/TCP -> #1 of 0\n  10.96.0.1 service external\n  10.96.0.9 service',
      'Service/default/web\n  10.96.0.1:80/TCP -> #1 of 0\n  10.96.0.1 service',
    ])
    expect(world.conflicts).toEqual(['Service default/a-thief: 10.96.0.1:80/TCP already belongs to Service/default/web, in part'])
    world.drop(service('web'))
    expect(world.owners()).toEqual(['Service/default/a-thief', 'Service/default/web'])
    expect(world.conflicts).toEqual([])
  })

  const made = (manifest: Manifest, creationTimestamp: string): Manifest => {
    const { metadata } = manifest
    return { ...manifest, metadata: { ...(typeof metadata === 'object' ? metadata : {}), creationTimestamp } }
  }
  const [LONG_AGO, TODAY] = ['2024-01-01T00:00:00Z', '2026-01-01T00:00:00Z']
  const ADDR = '203.0.113.80'
  const given = (name: string, at: number): Manifest =>
    service(name, { clusterIPs: [`10.96.0.${at}`], type: 'LoadBalancer', ingress: [{ ip: ADDR }] })
  const named = (name: string, at: number): Manifest => service(name, { clusterIPs: [`10.96.0.${at}`], spec: { externalIPs: [ADDR] } })
  const holds = (loser: string, winner: string): string => `Service ${loser}: ${ADDR}:80/TCP already belongs to Service/${winner}, in part`

  test.each([
    [
      'a load balancer’s address is not taken by a younger name in externalIPs',
      made(given('z/web', 2), LONG_AGO),
      made(named('a/a', 3), TODAY),
    ],
    [
      'a load balancer’s address is not taken by an older name in externalIPs',
      made(given('z/web', 2), TODAY),
      made(named('a/a', 3), LONG_AGO),
    ],
    ['of two that name an address the older has it', made(named('z/web', 2), LONG_AGO), made(named('a/a', 3), TODAY)],
    ['of two that a controller gave an address the older has it', made(given('z/web', 2), LONG_AGO), made(given('a/a', 3), TODAY)],
    ['one that says when it was made goes before one that does not', made(named('z/web', 2), TODAY), named('a/a', 3)],
  ])('%s, whichever comes first', (_title, keeps, loses) => {
    for (const [first, second] of [
      [keeps, loses],
      [loses, keeps],
    ] as const) {
      const world = new World(first)
      world.compile()
      world.put(second)
      world.compile()
      expect(world.conflicts).toEqual([holds('a/a', 'z/web')])
    }
  })

  test('of one service as many lost addresses are told as a reader can want, and that there are more', () => {
    const addrs = Array.from({ length: 130 }, (_, at) => `203.0.113.${at}`)
    const wants = (name: string, at: number): Manifest => service(name, { clusterIPs: [`10.96.0.${at}`], spec: { externalIPs: addrs } })
    const world = new World(wants('a', 2), wants('b', 3))
    world.compile()
    expect(world.conflicts).toHaveLength(1 + MOST_TOLD)
    expect(world.conflicts[0]).toBe('Service default/b: 203.0.113.0:80/TCP already belongs to Service/default/a, in part')
    expect(world.conflicts[MOST_TOLD]).toBe('Service default/b: more of its addresses and ports already belong to others, in part')
    world.drop(wants('a', 2))
    world.compile()
    expect(world.conflicts).toEqual([])
  })

  test('an address that is named and given is served as given where names are not served, and is nothing else', () => {
    const world = new World(given('z/web', 2), named('a/a', 3))
    const settings = { ...world.input.settings, services: { ...world.input.settings.services, externalIPs: false } }
    world.input = { ...world.input, settings }
    const text = world.compile().fragments.map(showFragment)
    expect(text.filter((one) => one.includes(ADDR)).map((one) => one.split('\n')[0])).toEqual(['Service/z/web'])
    expect(world.conflicts).toEqual([])
  })

  test('a node port twice: the first name has it, also when it comes later', () => {
    const of = (name: string, at: number): Manifest =>
      service(name, { clusterIPs: [`10.96.0.${at}`], ports: [{ port: 80, nodePort: 30080 }] })
    const world = new World(of('b', 2), of('c', 3))
    world.compile()
    expect(world.conflicts).toEqual(['Service default/c: 0.0.0.0:30080/TCP already belongs to Service/default/b, in part'])
    world.put(of('a', 1))
    expect(world.owners()).toEqual(['Service/default/a', 'Service/default/b'])
    expect(world.conflicts).toEqual([
      'Service default/b: 0.0.0.0:30080/TCP already belongs to Service/default/a, in part',
      'Service default/c: 0.0.0.0:30080/TCP already belongs to Service/default/a, in part',
    ])
  })

  test('a pod’s address passes to the pod that stays', () => {
    const world = new World(
      pod('a', { node: 'n1', ips: ['10.0.1.1'], terminating: true }),
      pod('b', { node: 'n1', ips: ['10.0.1.1'] }),
      pod('c', { node: 'n1', ips: ['192.168.0.1'] }),
      node('n1', { addresses: ['192.168.0.1'] }),
    )
    const owners = world.compile().fragments.map(showFragment)
    expect(owners).toContain(`Pod/default/b\n  10.0.1.1 pod ${workloadInterface({ namespace: 'default', name: 'b' })}`)
    expect(owners.some((text) => text.startsWith('Pod/default/a') || text.startsWith('Pod/default/c'))).toBe(false)
    // all that they have
    expect(world.conflicts).toEqual([
      'Pod default/a: 10.0.1.1 already belongs to Pod/default/b',
      'Pod default/c: 192.168.0.1 already belongs to Node/n1',
    ])
    world.drop(pod('b'))
    expect(world.owners()).toEqual(['Pod/default/a', 'Pod/default/b', 'node'])
  })
})
