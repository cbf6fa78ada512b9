// SPDX-License-Identifier: Apache-2.0
/** Objects as long as an API server takes them are read in a few times what their JSON alone would take.
 * Layer: test. */
import { expect, test } from 'vitest'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { kubernetesPolicy, v3 } from '../../../support/build.ts'
import type { Manifest } from '../../../support/build.ts'

/** chars: the limit of a request to etcd */
const LONGEST = 1_500_000

/** Times the ms of {@link yardstick}. It takes 3 to 10, and 18 where an error is made for each address. */
const MOST_TIMES = 18
const MOST_TIMES_BAD = 45

interface Long {
  readonly of: (size: number) => Manifest
  readonly most?: number
}

const many = <T>(size: number, one: (at: number) => T): T[] => Array.from({ length: size }, (_, at) => one(at))
const net = (at: number, end: string): string => `10.${(at >> 8) & 255}.${at & 255}.${end}`
const from = (blocks: readonly Manifest[]): Manifest =>
  kubernetesPolicy('shop/p', { ingress: [{ from: blocks.map((ipBlock) => ({ ipBlock })) }] })

const LONG: Readonly<Record<string, Long>> = {
  'prefixes with exceptions': { of: (size) => from(many(size, (at) => ({ cidr: net(at, '0/24'), except: [net(at, '0/26')] }))) },
  'parts that a prefix is without': { of: (size) => from([{ cidr: '10.0.0.0/8', except: many(size, (at) => net(at, '0/24')) }]) },
  'prefixes with bits behind them': { of: (size) => from([{ cidr: '10.0.0.0/8', except: many(size, (at) => net(at, '9/24')) }]) },
  'prefixes of IPv6': { of: (size) => from(many(size, (at) => ({ cidr: `2001:db8:${at.toString(16)}::/64` }))) },
  'bad addresses': {
    of: (size) => v3('HostEndpoint', 'h', { node: 'n1', interfaceName: 'eth1', expectedIPs: many(size, (at) => net(at, '256')) }),
    most: MOST_TIMES_BAD,
  },
  'a selector of signs': {
    of: (size) => v3('GlobalNetworkPolicy', 'p', { selector: `${'!'.repeat(2 * size)}has(app)`, ingress: [{ action: 'Allow' }] }),
  },
}

test.each(Object.entries(LONG))('%s', { timeout: 120_000 }, (what, { of, most = MOST_TIMES }) => {
  const value: unknown = JSON.parse(JSON.stringify(of(sizeOf(of))))
  const identified = identify(value)
  if (identified.kind !== 'ours') throw new Error(what)
  const tries: string[] = []
  for (let attempt = 0; attempt < 3; attempt++) {
    const [read, json] = [best(() => parseObject(value, identified.ref)), best(yardstick())]
    tries.push(`${read.toFixed(0)} ms, ${(read / json).toFixed(1)} times ${json.toFixed(0)} ms`)
    if (read > most * json) continue
    if (process.env['SLICES'] !== undefined) console.log(`${what}: ${tries.join('; ')}`)
    return
  }
  expect(tries).toEqual(`at most ${most} times as much`)
})

/** As many as there is room for. */
function sizeOf(of: Long['of']): number {
  const [few = 0, more = 0] = [1000, 2000].map((size) => JSON.stringify(of(size)).length)
  return Math.floor((1000 * LONGEST) / (more - few))
}

/** Parses the JSON of such an object, as a measure of this machine. */
function yardstick(): () => void {
  const text = JSON.stringify(from(many(41_000, (at) => ({ cidr: net(at, '0/24') }))))
  return () => {
    JSON.parse(text)
  }
}

/** ms of this thread, the least of several: the compiler of JavaScript has not seen the first. */
function best(act: () => unknown): number {
  const times = many(4, () => {
    const { user, system } = process.threadCpuUsage()
    act()
    const after = process.threadCpuUsage()
    return (after.user + after.system - user - system) / 1000
  })
  return Math.min(...times)
}
