// SPDX-License-Identifier: Apache-2.0
/** What pods ask for, and the pools they get. Layer: test. */
import { describe, expect, test } from 'vitest'
import { formatAddr, formatCidr, parseAddr, parseCidr } from '#lib/base/ip.ts'
import { candidates } from '#lib/ipam/candidates.ts'
import { choosePools, poolOfFixed } from '#lib/ipam/choose-pools.ts'
import { readIpAnnotations } from '#lib/ipam/ip-annotations.ts'
import { parseObject } from '#lib/kube/parse/parse-object.ts'
import type { IPPool } from '#lib/model/ip-pool.ts'
import type { Namespace } from '#lib/model/namespace.ts'
import { pool } from '../../support/build.ts'

function poolOf(name: string, spec: Readonly<Record<string, unknown>>): IPPool {
  const parsed = parseObject(pool(name, spec), { kind: 'IPPool', namespace: '', name })
  if (parsed.kind !== 'ok' || parsed.value.kind !== 'IPPool') throw new Error(JSON.stringify(parsed))
  return parsed.value
}

const NODE = { name: 'n1', labels: new Map([['rack', 'a']]) }

function wishes(pod: Readonly<Record<string, string>>, blue: Readonly<Record<string, string>> = {}) {
  const annotations = (of: Readonly<Record<string, string>>) =>
    new Map(Object.entries(of).map(([key, value]) => [`cni.netplane.io/${key}`, value]))
  const namespace: Namespace = { kind: 'Namespace', namespace: '', name: 'blue', labels: new Map(), wishes: annotations(blue) }
  return readIpAnnotations({ kind: 'Pod', namespace: 'blue', name: 'web', wishes: annotations(pod) }, namespace)
}

describe('wishes', () => {
  test('nothing is asked for', () => {
    expect(wishes({})).toEqual({ fixed: [], pools: { IPv4: undefined, IPv6: undefined } })
  })

  test("the pod's words go before its namespace's", () => {
    const { pools } = wishes({ ipv4pools: '["one"]' }, { ipv4pools: '["two"]', ipv6pools: '["six"]' })
    expect([pools.IPv4?.names, pools.IPv6?.names, pools.IPv6?.ref]).toEqual([['one'], ['six'], 'Namespace/blue'])
  })

  test('fixed addresses', () => {
    expect(wishes({ ipAddrs: '["10.0.0.5","fd00::5"]' }).fixed.map(formatAddr)).toEqual(['10.0.0.5', 'fd00::5'])
    // in old forms, which no API server looks at in an annotation
    expect(wishes({ ipAddrs: '["010.0.0.005"]' }).fixed.map(formatAddr)).toEqual(['10.0.0.5'])
    expect(wishes({ ipAddrs: '["::ffff:10.0.0.5"]' }).fixed.map(formatAddr)).toEqual(['10.0.0.5'])
  })

  test.each([
    [{ ipAddrs: '10.0.0.5' }, {}, "Pod blue/web: metadata.annotations['cni.netplane.io/ipAddrs']: must be a JSON list"],
    [{ ipAddrs: '["10.0.0"]' }, {}, `Pod blue/web: metadata.annotations['cni.netplane.io/ipAddrs']: "10.0.0" is no IP address`],
    [{ ipAddrs: '["10.0.0.1","10.0.0.2"]' }, {}, 'must be at most one address of each family'],
    [{ ipv6pools: '[]' }, {}, "Pod blue/web: metadata.annotations['cni.netplane.io/ipv6pools']: must be a JSON list"],
    [{}, { ipv4pools: '[1]' }, "Namespace blue: metadata.annotations['cni.netplane.io/ipv4pools']: must be a JSON list"],
  ])('%j and %j are refused', (pod, blue, reason) => {
    expect(() => wishes(pod, blue)).toThrow(reason)
  })
})

describe('pools', () => {
  const pools = [
    poolOf('z', { cidr: '10.9.0.0/16' }),
    poolOf('a', { cidr: '10.1.0.0/16', nodeSelector: "rack == 'b'" }),
    poolOf('b', { cidr: '10.2.0.0/16', nodeSelector: "rack == 'a'" }),
    poolOf('m', { cidr: '10.3.0.0/16', assignmentMode: 'Manual' }),
    poolOf('off', { cidr: '10.4.0.0/16', disabled: true }),
    poolOf('team', { cidr: '10.5.0.0/16', namespaceSelector: 'has(team)' }),
  ]
  const choose = (pod: Readonly<Record<string, string>>, of = pools): string[] | undefined =>
    choosePools({ pools: of, family: 'IPv4', node: NODE, namespace: { name: 'blue', labels: new Map() } }, wishes(pod).pools.IPv4)?.map(
      ({ name }) => name,
    )

  test('those that are for this node and namespace, by name', () => {
    expect(choose({})).toEqual(['b', 'z'])
  })

  test('those that are named, in that order, by name or prefix', () => {
    expect(choose({ ipv4pools: '["z","10.3.0.0/16"]' })).toEqual(['z', 'm'])
  })

  test('without a pool of the family, or one for all pods, the pod has the other family alone', () => {
    expect(choose({}, [])).toBeUndefined()
    expect(choose({}, pools.slice(3, 5))).toBeUndefined()
  })

  test.each([
    [{ ipv4pools: '["nope"]' }, "Pod blue/web: metadata.annotations['cni.netplane.io/ipv4pools']: there is no IPPool nope of IPv4"],
    [{ ipv4pools: '["off"]' }, 'IPPool off is disabled'],
    [{ ipv4pools: '["a"]' }, 'IPPool a is not for node n1: nodeSelector'],
    [{ ipv4pools: '["team"]' }, 'IPPool team is not for namespace blue: namespaceSelector'],
  ])('%j is refused', (pod, reason) => {
    expect(() => choose(pod)).toThrow(reason)
  })

  test('none that is for this node', () => {
    expect(() => choose({}, pools.slice(1, 2))).toThrow('Node n1: no IPPool of IPv4 is for this pod: a: is not for node n1: nodeSelector')
  })

  test('a fixed address is of the smallest pool that has it', () => {
    const nested = [...pools, poolOf('in', { cidr: '10.9.1.0/24' })]
    const query = { pools: nested, node: NODE, namespace: undefined }
    expect(poolOfFixed(parseAddr('10.9.1.7'), { query, ref: 'Pod/blue/web' }).name).toBe('in')
    expect(poolOfFixed(parseAddr('10.3.1.7'), { query, ref: 'Pod/blue/web' }).name).toBe('m')
    expect(() => poolOfFixed(parseAddr('10.4.1.7'), { query, ref: 'Pod/blue/web' })).toThrow('which has 10.4.1.7, is disabled')
    expect(() => poolOfFixed(parseAddr('172.16.0.1'), { query, ref: 'Pod/blue/web' })).toThrow('no IPPool has 172.16.0.1')
  })
})

describe('blocks to take', () => {
  const small = poolOf('p', { cidr: '10.0.0.0/24' })
  const all = ['10.0.0.0/26', '10.0.0.128/26', '10.0.0.192/26', '10.0.0.64/26']

  test('each once, wherever the node begins', () => {
    const orders = ['n1', 'n2', 'n3', 'n4', 'n5'].map((node) => [...candidates(small, node, [])].map(formatCidr))
    for (const order of orders) expect(order.toSorted()).toEqual(all)
    expect(new Set(orders.map(([first]) => first)).size).toBeGreaterThan(1)
  })

  test('what is taken, even in part or as a part, is left out', () => {
    const taken = ['10.0.0.7/32', '10.0.0.128/25'].map(parseCidr)
    expect([...candidates(small, 'n1', taken)].map(formatCidr)).toEqual(['10.0.0.64/26'])
  })

  test('a range of another node that has more blocks than a loop can count is passed over at once', () => {
    const six = { ...poolOf('six', { cidr: 'fd00::/56' }), blockBits: 122 }
    const [first] = candidates(six, 'n1', [parseCidr('fd00::/64')])
    expect(first && formatCidr(first)).toMatch(/^fd00::1:/)
  })

  test('a pool without end has a first one too', () => {
    const { done } = candidates(poolOf('six', { cidr: 'fd00::/48' }), 'n1', []).next()
    expect(done).toBe(false)
  })
})
