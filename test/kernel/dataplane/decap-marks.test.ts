// SPDX-License-Identifier: Apache-2.0
/** Marks of the tunnel on this machine's kernel. Layer: test. */
import { expect, test } from 'vitest'
import { kernelFacts } from '../kernel-facts.ts'
import { decapMarksCases } from './decap-marks-cases.ts'

test('a merged packet out of the tunnel is marked as tunnelled where it goes next, unless the kernel can be told', async () => {
  const seen: string[] = []
  const { features, missingHelpers } = kernelFacts()
  await decapMarksCases(features, missingHelpers, (name, wrong) => seen.push(`${name}: ${wrong ?? 'yes'}`))
  const wanted = ['IPv4', 'IPv6'].flatMap((family) =>
    ['keep', ...(features.decapUdp === true ? ['have lost'] : [])].map(
      (what) => `${family}: merged packets out of the tunnel ${what} its marks: yes`,
    ),
  )
  expect(seen).toEqual(wanted)
})
