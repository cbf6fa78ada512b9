// SPDX-License-Identifier: Apache-2.0
/** The kernel's hash maps keep the contract of the fake, with batch calls and without. Layer: test. */
import { afterAll, beforeAll, describe } from 'vitest'
import { BpfMap, setBatchCalls } from '#native'
import type { ContractMap } from '../../support/contracts/map-contract.ts'
import { describeMapContract } from '../../support/contracts/map-contract.ts'

const HASH = 1
const NO_PREALLOC = 1

function hash(flags: number): (maxEntries: number) => ContractMap {
  return (maxEntries) => BpfMap.create({ name: 'np_contract', type: HASH, keySize: 4, valueSize: 6, maxEntries, flags })
}

describeMapContract('hash map', hash(0))
describeMapContract('hash map that is not preallocated', hash(NO_PREALLOC))

describe('as before 5.6', () => {
  beforeAll(() => setBatchCalls(false))
  afterAll(() => setBatchCalls(true))
  describeMapContract('hash map, one call a row', hash(NO_PREALLOC))
})
