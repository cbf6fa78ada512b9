// SPDX-License-Identifier: Apache-2.0
/** Whole installations of older versions, each with what becomes of it beside it. Layer: test. */
import { describe, expect, test } from 'vitest'
import { findingText } from '#upgrade/stored/ipam/findings.ts'
import { readInstallation, type InstallationInput } from '#upgrade/stored/installation.ts'
import { outcomeLines, type Outcome } from '#upgrade/stored/outcome.ts'
import { common, expectedFile, fixture, fixtureNames, VARIANTS } from './installation.ts'
import { VERSIONS } from './stored.ts'

/** Each outcome with its object, then each address. */
function textOf(input: InstallationInput): string {
  const { outcomes, findings } = readInstallation(input)
  return [...outcomes.flatMap(outcomeText), '', ...findings.map(findingText), ''].join('\n')
}

function outcomeText(outcome: Outcome): readonly string[] {
  const owners = 'owners' in outcome && outcome.owners.length > 0 ? [`  owners ${JSON.stringify(outcome.owners)}`] : []
  return [...outcomeLines(outcome), ...owners, ...('object' in outcome ? [`  ${JSON.stringify(outcome.object)}`] : [])]
}

test.each(fixtureNames())('%s', async (name) => {
  await expect(textOf(fixture(name))).toMatchFileSnapshot(expectedFile(name))
})

test('there is a fixture of each version and of each variant', () => {
  const names = fixtureNames()
  expect(VERSIONS.filter((version) => !names.some((name) => name.startsWith(`${version}-`)))).toEqual([])
  expect(VARIANTS.filter((variant) => !names.some((name) => name.endsWith(`-${variant}`)))).toEqual([])
})

describe.each(VERSIONS)('an installation of %s without anything unusual', (version) => {
  test.each(VARIANTS)('%s comes out whole', (variant) => {
    const { outcomes, findings } = readInstallation(common(version, variant))
    expect(outcomes.filter(({ kind }) => kind === 'refused')).toEqual([])
    expect(findings.filter(({ kind }) => kind !== 'carried')).toEqual([])
    expect(findings.map(({ holder }) => holder)).toEqual(expect.arrayContaining(['shop/web', 'shop/db']))
    expect(outcomes.flatMap((one) => ('object' in one ? [`${one.object.kind}/${one.object.metadata.name}`] : []))).toEqual(
      expect.arrayContaining(['Tier/default', 'FelixConfiguration/default', 'NetworkPolicy/web', 'GlobalNetworkPolicy/deny-all']),
    )
  })
})
