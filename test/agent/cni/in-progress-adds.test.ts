// SPDX-License-Identifier: Apache-2.0
/** Which sandboxes that are being added are still wanted. Layer: test. */
import { expect, test } from 'vitest'
import { InProgressAdds, type InProgressAdd, type InProgressAddsOptions } from '#agent/cni/in-progress-adds.ts'
import type { PodSandbox } from '#agent/cni/request.ts'

function sandbox(containerId: string, uid: string | undefined, pod = 'a'): PodSandbox {
  return { containerId, ifname: 'eth0', netns: '/n', namespace: 'default', pod, ...(uid !== undefined && { uid }) }
}

function addsOf(known: ReturnType<InProgressAddsOptions['known']>): InProgressAdds {
  return new InProgressAdds({ known: () => known, stop: new AbortController().signal })
}

const WITH_UIDS = { uid: 'u1' }

test.each([
  { name: 'of one uid', uids: ['u1', 'u1'], known: WITH_UIDS, isGivenUp: true },
  { name: 'of which a runtime says no uid', uids: ['u1', undefined], known: WITH_UIDS, isGivenUp: true },
  { name: 'of other uids, of a source without', uids: ['u1', 'u2'], known: {}, isGivenUp: true },
  { name: 'of another pod of that name', uids: ['u1', 'u2'], known: WITH_UIDS, isGivenUp: false },
  { name: 'of another that no source has yet', uids: ['u1', 'u2'], known: undefined, isGivenUp: false },
  { name: 'of another name', uids: ['u1', 'u1'], known: WITH_UIDS, pod: 'b', isGivenUp: false },
])('an ADD of a sandbox gives up the one before it: $name', ({ uids: [before, after], known, pod, isGivenUp }) => {
  const adding = addsOf(known)
  using first = adding.begin(sandbox('first', before))
  using second = adding.begin(sandbox('second', after, pod))
  expect([first.signal.aborted, second.signal.aborted]).toEqual([isGivenUp, false])
  if (isGivenUp) expect(() => first.signal.throwIfAborted()).toThrow('another sandbox of the pod is asked for: second')
})

test('a call that comes twice gives no sandbox up, and an ADD that is over is not wanted', () => {
  const adding = addsOf(undefined)
  const over: InProgressAdd[] = []
  {
    using one = adding.begin(sandbox('same', 'u1'))
    using again = adding.begin(sandbox('same', 'u1'))
    over.push(one, again)
    expect([adding.of('same'), one.signal.aborted, again.signal.aborted]).toEqual([over, false, false])
  }
  expect([adding.of('same'), ...over.map(({ signal }) => signal.aborted)]).toEqual([[], true, true])
})

test('all end when the agent stops, also those that come later', () => {
  const stop = new AbortController()
  const adding = new InProgressAdds({ known: () => undefined, stop: stop.signal })
  using early = adding.begin(sandbox('early', 'u1'))
  stop.abort(new Error('the agent stops'))
  using late = adding.begin(sandbox('late', 'u1', 'b'))
  for (const { signal } of [early, late]) expect(() => signal.throwIfAborted()).toThrow('the agent stops')
})

test('its container is busy until the work that it keeps is over, however that ends', async () => {
  const adding = addsOf(undefined)
  const { promise, reject } = Promise.withResolvers<never>()
  {
    using one = adding.begin(sandbox('one', 'u1'))
    one.keep(promise)
  }
  expect([adding.isBusy('one'), adding.isBusy('other')]).toEqual([true, false])
  reject(new Error('no'))
  await promise.catch(() => undefined)
  expect(adding.isBusy('one')).toBe(false)
})
