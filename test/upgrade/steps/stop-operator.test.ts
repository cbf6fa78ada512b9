// SPDX-License-Identifier: Apache-2.0
/** The way back of an upgrade starts an operator that was stopped. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject } from '#lib/api/resource.ts'
import { startOperator } from '../../../upgrade/steps/stop-operator.ts'

const operator = (tag: string, replicas: number) =>
  asApiObject({
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { namespace: 'o', name: 'netplane-operator' } },
    spec: { replicas, template: { spec: { containers: [{ name: 'netplane-operator', image: `netplane/operator:${tag}` }] } } },
  })

test.each([
  ['an older one that was stopped is started', operator('3.27.0', 0), true],
  ['an older one that runs is left', operator('3.27.0', 2), false],
  ['one of this version is left', operator('3.31.5', 0), false],
  ['where there is none, nothing is done', undefined, false],
])('%s', async (_, found, starts) => {
  const patches: unknown[] = []
  const client = {
    patch: (named: { readonly name: string }, patch: unknown) => {
      patches.push([named.name, patch])
      return Promise.resolve(operator('3.27.0', 1))
    },
  }
  expect(await startOperator({ client, operator: found, version: '3.31.5' }, new AbortController().signal)).toBe(starts)
  expect(patches).toEqual(starts ? [['netplane-operator', { spec: { replicas: 1 } }]] : [])
})
