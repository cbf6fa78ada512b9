// SPDX-License-Identifier: Apache-2.0
/** Every value that a soak writes is one that agents obey at once. */
import { expect, test } from 'vitest'
import { resolveConfig } from '#agent/config/resolve.ts'
import { layerFrom } from '#agent/config/layers.ts'
import { allFields } from '#agent/config/schema.ts'
import { configuration } from '../../../soak/changes/configurations.ts'
import { Random } from '../../../soak/random.ts'
import { felixConfiguration, model } from '../../support/build.ts'

test('no configuration has a value that is refused or waits for a restart', () => {
  const random = new Random(3)
  const live = new Set(allFields.filter(({ change }) => change === 'live').map(({ name }) => name.split('.')[0]))
  let before = resolveConfig([], undefined)
  for (let round = 0; round < 500; round++) {
    const spec = configuration(random)
    const object = model(felixConfiguration('default', spec))
    if (object.kind !== 'FelixConfiguration') throw new Error(object.kind)
    before = resolveConfig([layerFrom(object)], before)
    expect(before).toMatchObject({ rejected: [], waiting: [] })
    for (const field of Object.keys(spec)) expect(live).toContain(field)
  }
})
