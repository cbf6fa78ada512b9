// SPDX-License-Identifier: Apache-2.0
/** Halves of rows of addresses, in any order. Layer: test. */
import { beforeEach, describe, expect, test } from 'vitest'
import { ADDR_LOCAL_POD, ADDR_SELF } from '#lib/base/bpf-constants.ts'
import { RowDiff } from '#agent/dataplane/maps/row-diff.ts'
import { AddrMerger } from '#agent/dataplane/policy/addr-merger.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { decodeText, textWriter } from '#agent/maps/byte-rows.ts'
import { addrInfo } from '../../../../testkit/packets/addr-info.ts'
import { bindDeclared, builtObject } from '../../../support/compiled.ts'

const { value } = bindDeclared(catalogue.np_addrs, builtObject('tc').btf)
const write = textWriter(value)
const pod = (ifindex: number): string => write(addrInfo(ADDR_LOCAL_POD, { flags: 2, ifindex }))
const RULES = { identity: 7, ingress: '00000000000000aa', egress: '00000000000000bb' }
const rules = (of: object = RULES): string => write(addrInfo(0, of))

let rows: RowDiff
let join: AddrMerger

beforeEach(() => {
  rows = new RowDiff()
  join = new AddrMerger({ rows, value, actual: (key) => rows.actual(key) })
})

function shown(): unknown {
  const text = rows.wanted('k')
  return text === undefined ? undefined : decodeText(value, text)
}

describe('one half alone', () => {
  test('policy knows addresses of which nothing else is known', () => {
    join.rule('k', rules())
    expect(shown()).toEqual(addrInfo(0, RULES))
    join.rule('k', undefined)
    expect(shown()).toBeUndefined()
  })

  test('addresses of the node need no rules', () => {
    join.want('k', write(addrInfo(ADDR_SELF, { flags: 1 })))
    expect(shown()).toEqual(addrInfo(ADDR_SELF, { flags: 1 }))
    join.unwant('k')
    expect(shown()).toBeUndefined()
  })

  test('a pod waits for its rules', () => {
    join.want('k', pod(3))
    expect([shown(), join.waiting, join.wanted('k')]).toEqual([undefined, 1, pod(3)])
    join.rule('k', rules())
    expect([shown(), join.waiting]).toEqual([addrInfo(ADDR_LOCAL_POD, { flags: 2, ifindex: 3, ...RULES }), 0])
  })
})

describe('a pod that follows another one', () => {
  beforeEach(() => {
    join.rule('k', rules())
    join.want('k', pod(3))
  })

  test('does not get the rules of that one', () => {
    join.announce('k')
    join.want('k', pod(4))
    expect(shown()).toMatchObject({ ifindex: 3, ingress: RULES.ingress })
    join.rule('k', rules({ identity: 8, ingress: '00000000000000cc' }))
    expect(shown()).toMatchObject({ ifindex: 4, identity: 8, ingress: '00000000000000cc' })
  })

  test('waits for the last of several that were announced', () => {
    join.announce('k')
    join.announce('k')
    join.want('k', pod(4))
    join.rule('k', rules({ identity: 8 }))
    expect(shown()).toMatchObject({ ifindex: 3, identity: 8 })
    join.rule('k', rules({ identity: 9 }))
    expect(shown()).toMatchObject({ ifindex: 4, identity: 9 })
  })

  test('keeps its place in the kernel while it waits under a new agent', () => {
    rows.readBack([['k', pod(9)]])
    const other = new AddrMerger({ rows, value, actual: (key) => rows.actual(key) })
    other.announce('k')
    other.announce('k')
    other.want('k', pod(9))
    other.rule('k', rules({ identity: 5 }))
    expect(shown()).toEqual(addrInfo(ADDR_LOCAL_POD, { flags: 2, ifindex: 9, identity: 5 }))
    other.rule('k', rules())
    expect(shown()).toEqual(addrInfo(ADDR_LOCAL_POD, { flags: 2, ifindex: 9, ...RULES }))
  })

  test('leaves its rules when it goes, until policy lets go of them', () => {
    join.unwant('k')
    expect(shown()).toEqual(addrInfo(0, RULES))
    join.rule('k', undefined)
    expect(shown()).toBeUndefined()
  })

  test('takes its place at once when nothing is announced for it', () => {
    join.want('k', pod(4))
    expect(shown()).toMatchObject({ ifindex: 4, ...RULES })
  })
})

test('a new whole forgets what was announced', () => {
  join.announce('k')
  join.rule('other', rules())
  join.forgetAnnounced()
  expect([join.isAnnounced('k'), [...join.ruled]]).toEqual([false, ['other']])
})
