// SPDX-License-Identifier: Apache-2.0
/** Goals of size: 10,000 pods, 500 combinations of labels, 1,000 policies; 1,000 rules in one set. Layer: test. */
import { describe, expect, test } from 'vitest'
import { PolicyCompiler } from '#agent/compile/policy/compiler.ts'
import type { PolicyRow, PolicyStep } from '#agent/compile/policy/tables.ts'
import { manyRules, policyUpdate, scalePod, scalePolicy } from '../../../../testkit/policy/scale.ts'

const PODS = 10_000
const POLICIES = 1000
const NEW_PODS = 200

/** Bytes of key, value and the element around them in a hash that is not preallocated. */
const BYTES = {
  bits: 16 + 128 + 48,
  ports: 16 + 520 + 48,
  pages: 16 + 512 + 48,
  rules: 16 + 8 + 48,
  nets: 64,
  ends: 16 + 32 + 48,
  hosts: 0,
}

function rowsOf(steps: readonly PolicyStep[]): readonly PolicyRow[] {
  return steps.flatMap((step): readonly PolicyRow[] => (step.kind === 'epoch' ? [] : step.rows))
}

function report(name: string, steps: readonly PolicyStep[]): string {
  const counts = new Map<PolicyRow['table'], number>()
  for (const { table } of rowsOf(steps)) counts.set(table, (counts.get(table) ?? 0) + 1)
  const bytes = [...counts].reduce((sum, [table, count]) => sum + count * BYTES[table], 0)
  return `${name}: ${[...counts].map(([table, count]) => `${count} ${table}`).join(', ')}; about ${(bytes / 1e6).toFixed(2)} MB of maps`
}

/** CPU time of this thread: other tests run beside. */
function timed<T>(work: () => T): { readonly result: T; readonly ms: number } {
  const before = process.threadCpuUsage()
  const result = work()
  const { user, system } = process.threadCpuUsage(before)
  return { result, ms: (user + system) / 1000 }
}

describe.each([
  ['of which 100 are here', 100],
  ['of which all are here', PODS],
])('10,000 pods, 500 combinations of labels, 1,000 policies, %s', (name, local) => {
  test('a full compile, a new pod, a new policy', { timeout: 60_000 }, () => {
    const updates = [
      ...Array.from({ length: POLICIES }, (_, at) => policyUpdate(scalePolicy(at))),
      ...Array.from({ length: PODS }, (_, at) => scalePod(at, (at * 7) % PODS < local)),
    ]
    const compiler = new PolicyCompiler()
    const before = process.memoryUsage().heapUsed
    const full = timed(() => compiler.change(updates))
    globalThis.gc?.()
    const heap = process.memoryUsage().heapUsed - before
    const pods = timed(() => Array.from({ length: NEW_PODS }, (_, at) => compiler.change([scalePod(PODS + at, true)])))
    const rows = pods.result.map((steps) => rowsOf(steps).length)
    const podMs = pods.ms / NEW_PODS
    const policy = timed(() => compiler.change([policyUpdate({ ...scalePolicy(POLICIES), name: 'new' })]))
    const gone = timed(() => compiler.change([{ ...policyUpdate({ ...scalePolicy(3), name: 'policy3' }), value: undefined }]))
    console.log(
      [
        report(name, full.result),
        `${JSON.stringify(compiler.size)}, ${(heap / 1e6).toFixed(0)} MB of heap, full compile ${full.ms.toFixed(0)} ms`,
        `new pod ${podMs.toFixed(2)} ms: ${rows.reduce((a, b) => a + b) / NEW_PODS} rows; new policy ${policy.ms.toFixed(1)} ms: ${rowsOf(policy.result).length} rows; removed ${gone.ms.toFixed(1)} ms: ${rowsOf(gone.result).length} rows`,
      ].join('\n'),
    )
    expect(full.ms).toBeLessThan(5000)
    expect(podMs).toBeLessThan(20)
    // of labels that local pods had already: with all of them here, every one
    if (local === PODS) expect(new Set(rows)).toEqual(new Set([1]))
  })
})

test('1,000 rules whose peers and ports overlap', { timeout: 60_000 }, () => {
  const compiler = new PolicyCompiler()
  const updates = [policyUpdate(manyRules(1000)), ...Array.from({ length: PODS }, (_, at) => scalePod(at, at === 0))]
  const { result, ms } = timed(() => compiler.change(updates))
  console.log(`${report('one set', result)}; ${JSON.stringify(compiler.size)}; ${ms.toFixed(0)} ms`)
  expect(ms).toBeLessThan(5000)
})
