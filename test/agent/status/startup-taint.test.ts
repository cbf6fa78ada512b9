// SPDX-License-Identifier: Apache-2.0
/** When and how the taint goes by which pods wait for the agent. Layer: test. */
import { expect, test } from 'vitest'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { STARTUP_TAINT } from '#lib/kube/objects/startup-taint.ts'
import { StartupTaint, untaint } from '#agent/status/startup-taint.ts'
import type { StatusApi } from '#agent/status/status-api.ts'

const NO_SCHEDULE = { key: STARTUP_TAINT, effect: 'NoSchedule' }
const NO_EXECUTE = { key: STARTUP_TAINT, effect: 'NoExecute', value: 'x' }
const OTHER = { key: 'team', value: 'a', effect: 'NoSchedule' }

function node(taints: readonly object[] | undefined): ApiObject {
  return asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' }, spec: taints && { taints } })
}

test.each([
  ['no taints', undefined],
  ['none that is left', []],
  ['another one', [OTHER]],
  ['one whose key begins alike', [{ ...NO_SCHEDULE, key: `${STARTUP_TAINT}-yet` }]],
])('a node with %s is left as it is', (_, taints) => {
  expect(untaint(node(taints))).toBeUndefined()
})

test('the taint alone is taken away, where it still is', () => {
  expect(untaint(node([OTHER, NO_SCHEDULE]))).toEqual([
    { op: 'test', path: '/spec/taints/1', value: NO_SCHEDULE },
    { op: 'remove', path: '/spec/taints/1' },
  ])
})

test('it is taken away with each of its effects, from the end', () => {
  expect(untaint(node([NO_SCHEDULE, OTHER, NO_EXECUTE]))).toEqual([
    { op: 'test', path: '/spec/taints/2', value: NO_EXECUTE },
    { op: 'remove', path: '/spec/taints/2' },
    { op: 'test', path: '/spec/taints/0', value: NO_SCHEDULE },
    { op: 'remove', path: '/spec/taints/0' },
  ])
})

test.each([
  [true, true, 1],
  [true, false, 0],
  [false, true, 0],
  [false, false, 0],
])('a taint that is there (%s) goes when the agent serves (%s): %i', (tainted, serves, writes) => {
  const api = {} as StatusApi
  expect(new StartupTaint({ api, node: 'n1', isTainted: () => tainted, serves: () => serves }).due()).toHaveLength(writes)
})

test('what the server has counts, not what the source has heard', async () => {
  const patches: unknown[] = []
  let there: ApiObject | undefined = node([NO_SCHEDULE])
  const nobody = (): Promise<never> => Promise.reject(new Error('not asked'))
  const api: StatusApi = {
    ...{ get: nobody, create: nobody, request: nobody },
    list: () => Promise.resolve(there === undefined ? [] : [there]),
    patch: (named, patch, { type, subresource }) => {
      patches.push([named.name, type, subresource, patch])
      return Promise.resolve(node([]))
    },
  }
  const subject = new StartupTaint({ api, node: 'n1', isTainted: () => true, serves: () => true })
  const write = async (): Promise<void> => {
    for (const due of subject.due()) await due.write(AbortSignal.timeout(1000))
  }
  await write()
  expect(patches).toEqual([['n1', 'json', undefined, untaint(node([NO_SCHEDULE]))]])
  for (const now of [node([]), undefined]) {
    there = now
    await write()
  }
  expect(patches).toHaveLength(1)
})
