// SPDX-License-Identifier: Apache-2.0
import { describe } from 'vitest'
import { generationsContract } from '../contracts/generations-contract.ts'
import { interfaces } from '../interfaces.ts'
import { FakeClock } from './fake-clock.ts'
import { FakeGenerations } from './fake-generations.ts'

describe('fake generations do what pinned ones do', () => {
  generationsContract(() => {
    const generations = new FakeGenerations({ interfaces: interfaces(), clock: new FakeClock() })
    const unpin = (): void => {
      const map = generations.maps.get('np_ct')
      if (map !== undefined) map.isPinned = false
      for (const id of generations.list()) generations.pinned.set(id, 1)
    }
    return { generations, refuse: () => (generations.refusal = new Error('refused')), unpin }
  })
})
