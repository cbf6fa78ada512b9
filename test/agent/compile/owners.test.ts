// SPDX-License-Identifier: Apache-2.0
/** Pods with one address: device, sets, labels, names of ports and explanations are all of one of them. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatAddr, parseAddr } from '#lib/base/ip.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import { nameKey, refText } from '#lib/model/ref.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import type { Packet } from '#lib/policy/packet.ts'
import type { Row } from '#agent/compile/desired.ts'
import { traceOf } from '#cli/explain/manifests/trace.ts'
import { clusterOf } from '#cli/explain/manifests/cluster.ts'
import { model, node, pod, v3, type PodSpec } from '../../support/build.ts'
import { Follower } from './policy/follower.ts'
import { World } from './world.ts'

const ADDRESSES = ['10.0.1.5', 'fd00::5'] as const
const ASKERS = ['10.0.2.9', 'fd00::29'] as const
const NODES = ['n1', 'n2'] as const

interface Contender {
  readonly name: string
  readonly node: string
  readonly terminating: boolean
  readonly started: number
  readonly uid: string
  readonly ips: readonly string[]
  /** its label, its policy and its port are those of this number */
  readonly color: number
}

const contenders: fc.Arbitrary<readonly Contender[]> = fc
  .array(
    fc.record({
      node: fc.constantFrom(...NODES),
      terminating: fc.boolean(),
      started: fc.integer({ min: 0, max: 1 }),
      ips: fc.constantFrom([ADDRESSES[0]], [ADDRESSES[1]], [...ADDRESSES]),
    }),
    { minLength: 2, maxLength: 4 },
  )
  .chain((all) =>
    fc
      .record({ names: permutation(all.length), uids: permutation(all.length) })
      .map(({ names, uids }) => all.map((one, at) => ({ ...one, name: `p${names[at] ?? 0}`, uid: `u${uids[at] ?? 0}`, color: at }))),
  )

function permutation(length: number): fc.Arbitrary<readonly number[]> {
  return fc.shuffledSubarray(
    Array.from({ length }, (_, at) => at),
    { minLength: length },
  )
}

/** The pod that has the address, decided independently of the product's code. */
function ownerOf(all: readonly Contender[], ip: string): Contender | undefined {
  const having = all.filter(({ ips }) => ips.includes(ip))
  const staying = having.filter(({ terminating }) => !terminating)
  const among = staying.length > 0 ? staying : having
  const youngest = Math.max(...among.map(({ started }) => started))
  return among.filter(({ started }) => started === youngest).sort((a, b) => (a.uid < b.uid ? -1 : 1))[0]
}

function podOf({ name, color, ...of }: Contender): KubeObject {
  const spec: PodSpec = { ...of, labels: { color: String(color) }, ports: [{ name: 'web', port: 8000 + color }] }
  return model(pod(name, spec))
}

/** Each color is reached on its own port alone, and may speak to that of the asker; the port named web is open for
 * all. */
const fixed: readonly KubeObject[] = [
  ...NODES.map((name, at) => model(node(name, { addresses: [`192.168.0.${at + 1}`, `fd01::${at + 1}`] }))),
  model(pod('asker', { node: 'n2', ips: ASKERS, labels: { app: 'asker' } })),
  ...[0, 1, 2, 3].flatMap((color) => [
    model(
      v3('NetworkPolicy', `default/own-${color}`, {
        selector: `color == '${color}'`,
        types: ['Ingress'],
        ingress: [{ action: 'Allow', protocol: 'TCP', destination: { ports: [9000 + color] } }],
      }),
    ),
    model(
      v3('NetworkPolicy', `default/asker-${color}`, {
        selector: "app == 'asker'",
        types: ['Ingress', 'Egress'],
        ingress: [
          { action: 'Allow', protocol: 'TCP', source: { selector: `color == '${color}'` }, destination: { ports: [7000 + color] } },
        ],
        egress: [
          { action: 'Allow', protocol: 'TCP', destination: { selector: 'has(color)', ports: ['web'] } },
          { action: 'Allow', protocol: 'TCP', destination: { ports: ['9000:9003'] } },
        ],
      }),
    ),
  ]),
]

function tcp(src: string, dst: string, dport: number): Packet {
  return { src: parseAddr(src), dst: parseAddr(dst), protocol: 6, sport: 40_000, dport, icmp: undefined }
}

const COLORS = [0, 1, 2, 3]

/** A cluster with pods that come and go, and what is compiled of it: the colors of the pod that counts as the owner
 * of an address. */
class Cluster {
  readonly #world = new World()
  readonly #followers = NODES.map((name) => new Follower(name))
  readonly #devices = new Map<string, readonly string[]>()
  readonly #objects = new Map<string, KubeObject>()

  change(put: readonly KubeObject[], gone: readonly KubeObject[] = []): void {
    for (const object of gone) this.#objects.delete(refText(object))
    for (const object of put) this.#objects.set(refText(object), object)
    const deletes = gone.map((object) => ({ kind: 'delete' as const, ref: object }))
    this.#world.store.sink('test').apply([...deletes, ...put.map((object) => ({ kind: 'upsert' as const, object }))])
    for (const follower of this.#followers) follower.put(put, gone)
    for (const { owner, rows } of this.#world.compile().fragments) this.#devices.set(owner, rows.flatMap(deviceText))
  }

  /** On the first node: interfaces that packets to the address go to. */
  devices(ip: string): readonly string[] {
    return [...this.#devices.values()].flat().flatMap((text) => (text.startsWith(`${ip} `) ? text.slice(ip.length + 1) : []))
  }

  set(ip: string, asker: string): readonly number[] {
    return this.#passing((color) => tcp(asker, ip, 9000 + color), ['ingress', 'egress'])
  }

  labels(ip: string, asker: string): readonly number[] {
    return this.#passing((color) => tcp(ip, asker, 7000 + color), ['ingress', 'egress'])
  }

  port(ip: string, asker: string): readonly number[] {
    return this.#passing((color) => tcp(asker, ip, 8000 + color), ['egress'])
  }

  /** Whom explanations name, and whose set they ask. */
  explained(ip: string, asker: string): { readonly name: string; readonly colors: readonly number[] } {
    const world = clusterOf([...this.#objects.values()].map((object) => ({ kind: 'upsert', object })))
    const options = { view: 'real', entry: undefined, device: undefined } as const
    const colors = COLORS.filter((color) => traceOf(world, tcp(asker, ip, 9000 + color), options).verdict === 'allow')
    return { name: world.ownerText(parseAddr(ip)), colors }
  }

  #passing(packet: (color: number) => Packet, directions: readonly ('ingress' | 'egress')[]): readonly number[] {
    const passes = (color: number): boolean =>
      this.#followers.every((node) => directions.every((direction) => node.action(packet(color), { direction }) === 'allow'))
    return COLORS.filter(passes)
  }
}

function deviceText(row: Row): readonly string[] {
  return row.table === 'addrs' && row.value.iface !== undefined ? [`${formatAddr(row.key.addr)} ${row.value.iface}`] : []
}

/** What each way of asking says. */
function answers(cluster: Cluster, family: 0 | 1): unknown {
  const [ip, asker] = [ADDRESSES[family], ASKERS[family]]
  const { name, colors } = cluster.explained(ip, asker)
  return [cluster.devices(ip), cluster.set(ip, asker), cluster.labels(ip, asker), cluster.port(ip, asker), name, colors]
}

/** The same where only this pod has the address. Without an owner no policy is asked about packets to the address. */
function wanted(owner: Contender | undefined): unknown {
  if (owner === undefined) return [[], COLORS, [], [], 'outside', COLORS]
  const ref = { namespace: 'default', name: owner.name }
  const colors = [owner.color]
  return [owner.node === 'n1' ? [workloadInterface(ref)] : [], colors, colors, colors, nameKey(ref), colors]
}

test('of pods with one address the same one is meant by device, set, labels, names of ports and explanation, whatever the order they come in', () => {
  fc.assert(
    fc.property(
      contenders.chain((all) => fc.tuple(fc.constant(all), permutation(all.length))),
      ([all, order]) => {
        const cluster = new Cluster()
        cluster.change(fixed)
        for (const at of order) cluster.change(all.filter((_, index) => index === at).map(podOf))
        for (let left = all; left.length > 0;) {
          for (const family of [0, 1] as const)
            expect(answers(cluster, family), JSON.stringify(left)).toEqual(wanted(ownerOf(left, ADDRESSES[family])))
          // the next one takes over
          const gone = ADDRESSES.map((ip) => ownerOf(left, ip)).find((owner) => owner !== undefined)
          left = left.filter((one) => one !== gone)
          cluster.change([], gone === undefined ? [] : [podOf(gone)])
        }
      },
    ),
    { numRuns: 40 },
  )
})
