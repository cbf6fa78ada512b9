// SPDX-License-Identifier: Apache-2.0
/** A compilation in slices has the same result as one without, and the event loop has turns meanwhile. Layer: test. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { atOnce, inSlices } from '#lib/base/async/slices.ts'
import { systemClock } from '#lib/base/clock.ts'
import type { KubeObject } from '#lib/model/snapshot.ts'
import { Health } from '#lib/obs/health.ts'
import { PageServer } from '#lib/obs/http.ts'
import { Store } from '#lib/store/store.ts'
import { ProxyHealth } from '#agent/http/proxy-health.ts'
import { DesiredState, type CompileResult } from '#agent/run/desired-state.ts'
import { kubernetesPolicy, model, node, pod } from '../../support/build.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'
import { NODE, object, policy } from '../compile/policy/arbitrary.ts'
import { FIELDS } from '../compile/policy/growing-fields.ts'

const SELF = model(node(NODE, { addresses: ['192.0.2.1'] }))

function setup() {
  const store = new Store({ sources: ['test'] })
  const state = new DesiredState({ node: NODE, store })
  const sink = store.sink('test')
  const put = (objects: readonly KubeObject[]): void => {
    sink.apply(objects.map((one) => ({ kind: 'upsert', object: one })))
  }
  put([SELF])
  sink.synced()
  return { store, state, put }
}

/** Without the snapshot, which is a view. */
function comparable(result: CompileResult | undefined): unknown {
  return result && { ...result, snapshot: undefined }
}

const batch = fc.record({
  objects: fc.array(fc.oneof(object, policy), { minLength: 1, maxLength: 12 }),
  /** after so many steps of the compilation before */
  at: fc.nat(60),
})

test('what comes in the middle of a compilation is in the next one, and both are as they would be one after the other', () => {
  fc.assert(
    fc.property(fc.array(batch, { minLength: 2, maxLength: 5 }), (batches) => {
      const [whole, sliced] = [setup(), setup()]
      const expected = batches.map(({ objects }) => {
        whole.put(objects)
        return comparable(atOnce(whole.state.compile()))
      })
      const results: unknown[] = []
      sliced.put(batches[0]?.objects ?? [])
      for (const next of [...batches.slice(1), undefined]) {
        using stack = new DisposableStack()
        stack.use(sliced.store.hold())
        const work = sliced.state.compile()
        for (let steps = 0; ; steps++) {
          if (steps === next?.at) sliced.put(next.objects)
          const step = work.next()
          if (step.done !== true) continue
          if (next !== undefined && steps < next.at) sliced.put(next.objects)
          results.push(comparable(step.value))
          break
        }
      }
      expect(results).toEqual(expected)
    }),
    { numRuns: Number(process.env['RUNS'] ?? 40) },
  )
})

/** Policies that take long, as the API server would have them: up to 1.5 MB. */
const LONG: Readonly<Record<string, KubeObject>> = {
  '10,000 rules': model(kubernetesPolicy('shop/p', { ingress: rules(10_000) })),
  'many prefixes with ports': growing('peers with ports', 39_000),
}

function rules(count: number): object[] {
  return Array.from({ length: count }, (_, at) => ({
    from: [{ ipBlock: { cidr: `10.${at >> 8}.${at & 255}.0/24` } }],
    ports: [{ port: 1 + at }],
  }))
}

function growing(field: string, size: number): KubeObject {
  const of = FIELDS['NetworkPolicy']?.[field]?.of
  if (of === undefined) throw new Error(`no such field: ${field}`)
  return model(of(size))
}

const LONGEST_MS = 100

/** ms that this thread has worked: what other processes have of the machine is not in it. */
function worked(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

test.each(Object.entries(LONG))(
  '/healthz is answered within 100 ms of work during a compilation of %s',
  { timeout: 300_000 },
  async (_what, long) => {
    const health = new Health(() => Date.now())
    const proxy = new ProxyHealth({ health, wall: () => Date.now(), eligible: () => true })
    await using server = new PageServer({ host: '127.0.0.1', port: 0, pages: proxy.nodePages, onError: () => undefined })
    const address = `http://127.0.0.1:${await server.start()}/healthz`
    await withinBestOfThree(LONGEST_MS, async () => {
      const { store, state, put } = setup()
      put([model(pod('shop/web', { node: NODE, ips: ['10.0.0.1'] }))])
      atOnce(state.compile())
      put([long])
      await (await fetch(address)).text()
      using stack = new DisposableStack()
      stack.use(store.hold())
      let isDone = false
      const compiled = inSlices(state.compile(), systemClock).finally(() => (isDone = true))
      let [asked, late] = [0, 0]
      const over = (): boolean => isDone
      while (!over()) {
        const start = worked()
        await (await fetch(address)).text()
        late = Math.max(late, worked() - start)
        asked++
      }
      expect((await compiled)?.compiled?.desired.policy.length).toBeGreaterThan(0)
      expect(asked).toBeGreaterThan(2)
      if (process.env['SLICES'] !== undefined) console.log(`${_what}: ${asked} requests, the longest ${late.toFixed(0)} ms`)
      return late
    })
  },
)
