// SPDX-License-Identifier: Apache-2.0
/** Small dense worlds of one family and single changes to them, in which a wrong order of rows shows: few labels,
 * prefixes within prefixes, short policies. Layer: test. */
import fc from 'fast-check'
import { parseAddr, parseCidr } from '#lib/base/ip.ts'
import type { Addr, Cidr } from '#lib/base/ip.ts'
import type { Pod } from '#lib/model/pod.ts'
import { ANYWHERE, ruleOf } from '#lib/model/policy.ts'
import type { HostEndpoint, NetworkSet, Policy, Scope, Side } from '#lib/model/policy.ts'
import { ALL, equals } from '#lib/model/selector/selector.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import type { Packet } from '#lib/policy/packet.ts'

const NODE = 'n1'
const PODS = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.1.1', '10.0.1.2']
const STRANGERS = ['192.0.2.1', '192.0.2.200', '203.0.113.1', '10.0.0.77', '10.9.9.9']
const NETS = ['10.0.0.0/8', '10.0.0.0/24', '10.0.0.2/32', '192.0.2.0/24', '192.0.2.128/25', '0.0.0.0/0']
const PORTS = [80, 81]

export interface Change {
  readonly put: readonly KubeObject[]
  readonly gone: readonly KubeObject[]
}

/** What is here as IPv4 is in the same place of fd00::/96 as IPv6. */
function addrOf(text: string, v4: boolean): Addr {
  return parseAddr(v4 ? text : `fd00::${text}`)
}

function cidrOf(text: string, v4: boolean): Cidr {
  const [addr = '', bits = ''] = text.split('/')
  if (v4) return parseCidr(text)
  return parseCidr(bits === '0' ? '::/0' : `fd00::${addr}/${Number(bits) + 96}`)
}

const app = fc.constantFrom('1', '2', '3')
const selector = fc.oneof({ weight: 3, arbitrary: app.map((value) => equals('app', value)) }, fc.constant(ALL))
const nothing = fc.constant(ANYWHERE)
const action = fc.constantFrom('allow' as const, 'allow' as const, 'deny' as const, 'pass' as const)
const port = fc.option(fc.constantFrom(...PORTS), { nil: undefined, freq: 2 })

function netsOf(v4: boolean): fc.Arbitrary<readonly Cidr[]> {
  return fc.subarray(NETS, { minLength: 1, maxLength: 3 }).map((all) => all.map((text) => cidrOf(text, v4)))
}

function sideOf(v4: boolean): fc.Arbitrary<Side> {
  const nets = netsOf(v4)
  return fc.oneof(
    { weight: 3, arbitrary: selector.map((one) => ({ ...ANYWHERE, selector: one })) },
    { weight: 3, arbitrary: nets.map((some) => ({ ...ANYWHERE, nets: some })) },
    nets.map((some) => ({ ...ANYWHERE, notNets: some })),
    selector.map((one) => ({ ...ANYWHERE, notSelector: one })),
  )
}

interface Ends {
  readonly peer: fc.Arbitrary<Side>
  readonly own: fc.Arbitrary<Side>
  readonly scope?: fc.Arbitrary<Scope>
}

function rulesOf(direction: 'ingress' | 'egress', { peer, own }: Ends) {
  return fc.array(fc.record({ action, peer, own, port }), { minLength: 1, maxLength: 3 }).map((all) =>
    all.map(({ action: what, peer: other, own: end, port: to }, at) => {
      const [source, destination] = direction === 'ingress' ? [other, end] : [end, other]
      if (to === undefined) return ruleOf(at, { action: what, source, destination })
      return ruleOf(at, { action: what, protocols: [6], source, destination: { ...destination, ports: [{ from: to, to }] } })
    }),
  )
}

function policyOf(ends: Ends): fc.Arbitrary<Policy> {
  return fc
    .record({
      name: fc.constantFrom('a', 'b', 'c'),
      tier: fc.constantFrom('default', 'adminnetworkpolicy'),
      subject: selector,
      ingress: rulesOf('ingress', ends),
      egress: fc.option(rulesOf('egress', ends), { nil: undefined }),
      scope: ends.scope ?? fc.constant('normal'),
    })
    .map((of) => ({ ...of, kind: 'GlobalNetworkPolicy', namespace: '', order: 1, staged: undefined }))
}

/** One of two network sets. */
function networkSetOf(v4: boolean): fc.Arbitrary<NetworkSet> {
  return fc
    .record({ name: fc.constantFrom('s', 't'), value: app, nets: netsOf(v4) })
    .map(({ value, ...of }) => ({ ...of, kind: 'GlobalNetworkSet', namespace: '', labels: new Map([['app', value]]) }))
}

export const HOST: HostEndpoint = {
  kind: 'HostEndpoint',
  namespace: '',
  name: 'h',
  node: NODE,
  labels: new Map([['app', '1']]),
  interfaceName: 'eth0',
  expectedIPs: [],
  profiles: [],
  ports: [],
}

/** One of PODS, with this label `app`. */
export function podOf(ip: string, value: string, v4 = true): Pod {
  return {
    kind: 'Pod',
    namespace: 'x',
    name: ip,
    nodeName: ip === '10.0.1.2' ? 'n2' : NODE,
    podIPs: [addrOf(ip, v4)],
    hostNetwork: false,
    phase: 'Running',
    terminating: false,
    labels: new Map([['app', value]]),
    serviceAccount: 'default',
    ports: [],
  }
}

/** From and to every address, where one of both is a pod, on one of two ports. */
function packetsOf(v4: boolean, ports: readonly number[]): readonly Packet[] {
  const everybody = [...PODS, ...STRANGERS]
  return everybody.flatMap((src) =>
    everybody
      .filter((dst) => dst !== src && (PODS.includes(src) || PODS.includes(dst)))
      .flatMap((dst) =>
        ports.map((dport) => ({ src: addrOf(src, v4), dst: addrOf(dst, v4), protocol: 6, sport: 40_000, dport, icmp: undefined })),
      ),
  )
}

export interface Dense {
  readonly pods: fc.Arbitrary<readonly Pod[]>
  readonly world: fc.Arbitrary<readonly KubeObject[]>
  /** the same, but no rule asks about both ends: both ends of a packet may be in a set that changes, and only then
   * it is judged as before or as after */
  readonly oneSided: fc.Arbitrary<readonly KubeObject[]>
  /** of a policy or a pod */
  readonly change: fc.Arbitrary<Change>
  /** of a network set */
  readonly setChange: fc.Arbitrary<Change>
  /** of several of all these at once */
  readonly batch: fc.Arbitrary<Change>
  /** with HOST, of which policies are as well */
  readonly hostWorld: fc.Arbitrary<readonly KubeObject[]>
  readonly hostBatch: fc.Arbitrary<Change>
  readonly packets: readonly Packet[]
}

/** No packet is sent to or from a pod that is gone, nor between new pods before both are there. */
export function isSent({ src, dst }: Packet, old: ReadonlySet<Addr>, now: ReadonlySet<Addr>): boolean {
  const isGone = (addr: Addr): boolean => old.has(addr) && !now.has(addr)
  const isNew = (addr: Addr): boolean => now.has(addr) && !old.has(addr)
  return !isGone(src) && !isGone(dst) && !(isNew(src) && isNew(dst))
}

/** The last word on each object. */
function together(changes: readonly Change[]): Change {
  const last = new Map<string, Change>()
  for (const change of changes) for (const { kind, name } of [...change.put, ...change.gone]) last.set(`${kind} ${name}`, change)
  return { put: [...last.values()].flatMap(({ put }) => put), gone: [...last.values()].flatMap(({ gone }) => gone) }
}

export function dense(v4: boolean, ports: readonly number[] = PORTS): Dense {
  const side = sideOf(v4)
  const twoSided = { peer: side, own: fc.oneof({ weight: 4, arbitrary: nothing }, side) }
  const policy = policyOf(twoSided)
  const scope = fc.constantFrom('normal' as const, 'forward' as const, 'doNotTrack' as const, 'preDNAT' as const)
  const hostPolicy = policyOf({ ...twoSided, scope })
  const networkSet = networkSetOf(v4)
  const anyPod = fc.tuple(fc.constantFrom(...PODS), app).map(([ip, value]) => podOf(ip, value, v4))
  const pods = fc.tuple(app, app, app, app, app).map((apps) => PODS.map((ip, at) => podOf(ip, apps[at] ?? '1', v4)))
  const among = (policies: fc.Arbitrary<readonly Policy[]>): fc.Arbitrary<readonly KubeObject[]> =>
    fc.tuple(pods, policies, fc.array(networkSet, { maxLength: 2 })).map((parts) => parts.flat())
  const put = (one: KubeObject): Change => ({ put: [one], gone: [] })
  const gone = (one: KubeObject): Change => ({ put: [], gone: [one] })
  const change = fc.oneof(
    { weight: 3, arbitrary: policy.map(put) },
    { weight: 2, arbitrary: anyPod.map(put) },
    policy.map(gone),
    anyPod.map(gone),
  )
  const setChange = networkSet.chain((one) => fc.constantFrom(put(one), put(one), gone(one)))
  const batchOf = (...of: readonly fc.Arbitrary<Change>[]): fc.Arbitrary<Change> =>
    fc.array(fc.oneof(...of), { minLength: 2, maxLength: 5 }).map(together)
  const host = app.map((value) => ({ ...HOST, labels: new Map([['app', value]]) }))
  return {
    pods,
    world: among(fc.array(policy, { maxLength: 3 })),
    oneSided: among(fc.array(policyOf({ peer: side, own: nothing }), { minLength: 1, maxLength: 3 })),
    change,
    setChange,
    batch: batchOf(change, change, change, setChange),
    hostWorld: among(fc.array(hostPolicy, { minLength: 1, maxLength: 3 })).map((objects) => [HOST, ...objects]),
    hostBatch: batchOf(hostPolicy.map(put), hostPolicy.map(gone), anyPod.map(put), setChange, host.map(put)),
    packets: packetsOf(v4, ports),
  }
}
