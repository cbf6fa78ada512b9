// SPDX-License-Identifier: Apache-2.0
/** Automatic host endpoints by the rows of autohep.json, as they are with Calico 3.31. Layer: test.
 *
 * Names are mapped: a node of Calico's is a NodeNetwork. Its `bgp` addresses and those of type InternalIP are
 * InternalIPs of the Node, its interfaces are NodeNetwork.spec.interfaces. Dropped are:
 * - addresses of tunnels (hep-01 steps 1 to 5, hep-02, hep-05): no node of ours has a tunnel with an address. Of those
 *   in hep-01 192.168.100.1 stays where it is also an interface's, and comes by that.
 * - fe80::1 in hep-02: of a node that Kubernetes does not know no link-local address is believed.
 * - labels that Calico's node has and the Node has not (hep-01): a node's labels are those of the Node. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { endpointName } from '#controllers/host-endpoints/names.ts'
import { World, type NodeWords } from './world.ts'

type Strings = Readonly<Record<string, string>>

interface WantedEndpoint {
  readonly name?: string
  readonly labels?: Strings
  readonly interface?: string
  readonly expectedIPs?: readonly string[]
}

interface Do {
  readonly k8sNode?: { readonly labels: Strings }
  readonly k8sNodeLabels?: Strings
  readonly calicoNode?: Readonly<Record<string, unknown>>
  readonly config?: object
  readonly templates?: readonly object[]
  readonly delete?: 'k8sNode'
  readonly start?: string
}

interface Expected {
  readonly heps?: readonly WantedEndpoint[]
  readonly hepsGone?: readonly string[]
  readonly unchanged?: readonly string[]
}

interface Case {
  readonly id: string
  readonly name: string
  readonly config?: object
  readonly pre?: readonly { readonly hep: string; readonly labels: Strings; readonly node: string }[]
  readonly steps?: readonly { readonly do: Do | 'start'; readonly expect: Expected }[]
}

interface Cases {
  readonly defaults: { readonly label: Strings; readonly profiles: readonly string[] }
  readonly calicoNode: Readonly<Record<string, Strings>>
  readonly cases: readonly Case[]
}

const NODE = 'node1'
const { defaults, cases, calicoNode } = JSON.parse(readFileSync(new URL('autohep.json', import.meta.url), 'utf8')) as Cases
const LABEL = defaults.label

/** Addresses of tunnels as the rows have them, but for those that are interfaces'. */
const TUNNELS: ReadonlySet<string> = new Set(['192.168.100.1', '10.10.20.1', 'dead:beef::1', 'dead:beef::100:1'])

/** A row's node, told step by step. */
class Row {
  readonly world = new World()
  /** Calico's */
  #node: Record<string, unknown> = flat(calicoNode)
  #labels: Strings | undefined

  constructor({ config = { autoCreate: 'Enabled' }, pre = [] }: Case) {
    this.world.hostEndpoint = { autoCreate: 'Enabled', ...config }
    for (const { hep, labels, node } of pre) {
      const own = 'created-by' in labels ? LABEL : labels
      this.world.endpoints.set(hep, userEndpoint(hep, own, node))
    }
  }

  step(todo: Do): void {
    const { k8sNode, k8sNodeLabels, calicoNode: said, config, templates } = todo
    const { world } = this
    if (config !== undefined || templates !== undefined)
      world.hostEndpoint = { ...world.hostEndpoint, ...config, ...(templates && { templates }) }
    if (k8sNode !== undefined || k8sNodeLabels !== undefined) this.#labels = k8sNodeLabels ?? k8sNode?.labels
    if (said !== undefined) this.#node = { ...this.#node, ...said }
    if (todo.delete === undefined) this.#put()
    else world.remove(NODE)
  }

  #put(): void {
    const interfaces = (this.#node['interfaces'] ?? {}) as NonNullable<NodeWords['interfaces']>
    const addresses = this.#addresses()
    if (this.#labels === undefined) this.world.say(NODE, { addresses, interfaces, labels: (this.#node['labels'] ?? {}) as Strings })
    else this.world.put(NODE, { addresses, interfaces, labels: this.#labels })
  }

  #addresses(): readonly (readonly [string, string])[] {
    const bgp = ['bgp.ipv4Address', 'bgp.ipv6Address'].map((field) => ((this.#node[field] ?? '') as string).replace(/\/.*/, ''))
    const others = (this.#node['addresses'] ?? []) as readonly (readonly [string, string])[]
    return [...bgp.map((address) => ['InternalIP', address] as const), ...others.map(([address, type]) => [type, address] as const)]
  }

  /** As the row wants it, mapped. */
  expected({ expectedIPs, labels, interface: named, name = '<node>-auto-hep' }: WantedEndpoint): object {
    const interfaces = Object.values((this.#node['interfaces'] ?? {}) as Readonly<Record<string, readonly string[]>>).flat()
    const isKnown = this.#labels !== undefined
    const own = (expectedIPs ?? []).filter((address) => !TUNNELS.has(address) && (isKnown || !address.startsWith('fe80:')))
    const late = interfaces.filter((address) => TUNNELS.has(address))
    const ofNode = isKnown ? without(labels, (this.#node['labels'] ?? {}) as Strings, this.#labels ?? {}) : labels
    return {
      metadata: { name: name.replace('<node>', NODE), labels: { ...ofNode, ...LABEL } },
      spec: {
        ...(named === undefined || named === '' ? {} : { interfaceName: named }),
        ...(expectedIPs === undefined ? {} : { expectedIPs: [...own, ...late] }),
        profiles: defaults.profiles,
      },
    }
  }
}

/** "bgp.ipv4Address" */
function flat(parts: Readonly<Record<string, Strings>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(parts).flatMap(([part, of]) => Object.entries(of).map(([field, value]) => [`${part}.${field}`, value] as const)),
  )
}

/** Without labels that Calico's node alone has. */
function without(labels: Strings | undefined, calico: Strings, kubernetes: Strings): Strings {
  return Object.fromEntries(Object.entries(labels ?? {}).filter(([key]) => !(key in calico) || key in kubernetes))
}

function userEndpoint(name: string, labels: Strings, node: string): ApiObject {
  return asApiObject({ apiVersion: 'netplane.io/v3', kind: 'HostEndpoint', metadata: { name, labels }, spec: { node, interfaceName: '*' } })
}

const TEMPLATE = { generateName: 'template', interfaceCIDRs: ['192.168.100.1/32'] }
/** The node that has the address of the template: Calico's by its tunnel, ours by an interface. */
const IN_RANGE = { k8sNode: { labels: {} }, calicoNode: { interfaces: { tunl0: ['192.168.100.1'] } } }

/** Before a row's first step. hep-07 goes on where hep-05 has begun. */
const BEFORE: Readonly<Record<string, Do>> = {
  'hep-02': {},
  'hep-05': IN_RANGE,
  'hep-07': { ...IN_RANGE, templates: [TEMPLATE] },
}

test.each(cases.filter(({ steps }) => steps !== undefined))('$id: $name', (row) => {
  const told = new Row(row)
  told.step(BEFORE[row.id] ?? { k8sNode: { labels: {} } })
  // what is there before the controllers start they find
  if (row.pre === undefined) told.world.sync()
  for (const { do: todo, expect: wanted } of row.steps ?? []) {
    const before = new Map(told.world.endpoints)
    told.step(todo === 'start' ? {} : todo)
    told.world.sync()
    const { endpoints } = told.world
    for (const endpoint of wanted.heps ?? []) {
      const expected = told.expected(endpoint)
      const { name } = (expected as ApiObject).metadata
      expect(endpoints.get(name)).toMatchObject(expected)
    }
    const gone = (wanted.hepsGone ?? []).map((name) => name.replace('<node>', NODE))
    expect(gone.map((name) => [before.has(name), endpoints.has(name)])).toEqual(gone.map(() => [true, false]))
    for (const name of wanted.unchanged ?? []) expect([endpoints.get(name), before.has(name)]).toEqual([before.get(name), true])
  }
})

const HAS_IT = { interfaces: { eth0: ['192.168.100.1'] } }

/** Rows that are words alone. */
const WORDS: Readonly<Record<string, (world: World) => void>> = {
  'hep-06': (world) => {
    world.hostEndpoint = { autoCreate: 'Enabled', templates: [TEMPLATE] }
    for (const label of ['value1', 'value2']) {
      world.put(NODE, { ...HAS_IT, labels: { label } })
      world.sync()
      for (const name of [`${NODE}-auto-hep`, `${NODE}-template-auto-hep`])
        expect(world.endpoints.get(name)?.metadata.labels).toEqual({ label, ...LABEL })
    }
  },
  'hep-08': (world) => {
    const first = { ...TEMPLATE, nodeSelector: 'has(node1)' }
    const second = { generateName: 'second', interfaceCIDRs: ['192.168.100.0/24'] }
    world.put('node1', { ...HAS_IT, labels: { node1: '' } })
    world.put('node2', { ...HAS_IT, labels: { node1: '' } })
    world.hostEndpoint = { autoCreate: 'Enabled', templates: [first, second] }
    world.sync()
    const all = ['node1', 'node2'].flatMap((node) => [`${node}-auto-hep`, `${node}-second-auto-hep`, `${node}-template-auto-hep`])
    expect([...world.endpoints.keys()].sort()).toEqual(all)
    world.put('node2', { ...HAS_IT, labels: {} })
    world.sync()
    expect([...world.endpoints.keys()].sort()).toEqual(all.filter((name) => name !== 'node2-template-auto-hep'))
    world.hostEndpoint = { autoCreate: 'Disabled', templates: [first, second] }
    world.sync()
    expect([...world.endpoints.keys()]).toEqual([])
  },
  'hep-09': (world) => {
    world.hostEndpoint = { autoCreate: 'Enabled', templates: [TEMPLATE] }
    world.put(NODE, HAS_IT)
    world.sync()
    const made = new Map(world.endpoints)
    for (const [name, object] of made) {
      world.endpoints.set(name, { ...object, spec: { ...(object['spec'] as object), interfaceName: 'eth9' } })
      world.sync()
      expect(world.endpoints.get(name)).toEqual(object)
      world.endpoints.delete(name)
      world.sync()
      expect(world.endpoints.get(name)).toEqual(object)
    }
    expect(made.size).toBe(2)
  },
  'hep-11': (world) => {
    const long = 'n'.repeat(250)
    world.hostEndpoint = { autoCreate: 'Enabled' }
    world.put(long, {})
    world.sync()
    const [name = ''] = world.endpoints.keys()
    expect(name).toMatch(/^[a-z0-9]{1,43}-auto-hep$/)
    expect(name).toBe(endpointName(long))
    expect(endpointName('n'.repeat(244))).toBe(`${'n'.repeat(244)}-auto-hep`)
  },
  'hep-12': (world) => {
    const pattern = { generateName: 'named', interfacePattern: 'eth0', labels: { nic: 'first' } }
    const unmatched = { generateName: 'none', interfaceCIDRs: ['203.0.113.0/24'] }
    world.hostEndpoint = { autoCreate: 'Enabled', createDefaultHostEndpoint: 'Disabled', templates: [pattern, unmatched] }
    world.put(NODE, { interfaces: { eth0: ['192.168.200.3', 'fd00::3'], eth1: ['192.168.200.4'] } })
    world.sync()
    expect([...world.endpoints.values()]).toMatchObject([
      {
        metadata: { name: `${NODE}-named-eth0-auto-hep`, labels: { nic: 'first', ...LABEL } },
        spec: { node: NODE, interfaceName: 'eth0', expectedIPs: ['192.168.200.3', 'fd00::3'], profiles: defaults.profiles },
      },
    ])
  },
}

test.each(Object.keys(WORDS))('%s', (id) => {
  expect(cases.some((row) => row.id === id)).toBe(true)
  WORDS[id]?.(new World())
})

test('there is no row that is not looked at', () => {
  const told = cases.filter(({ id, steps }) => steps !== undefined || id in WORDS)
  expect(told.map(({ id }) => id)).toEqual(cases.map(({ id }) => id))
})
