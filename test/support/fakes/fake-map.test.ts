// SPDX-License-Identifier: Apache-2.0
/** The fake keeps the contract; the kernel's maps are tried in test/kernel. Layer: test. */
import { FakeMap } from './fake-map.ts'
import { describeMapContract } from '../contracts/map-contract.ts'

describeMapContract('FakeMap', (maxEntries) => new FakeMap({ name: 'np_contract', keySize: 4, valueSize: 6, maxEntries }))
