// SPDX-License-Identifier: Apache-2.0
/** Which sandboxes that are being added are still wanted. Layer: test. */
import { expect, test } from 'vitest'
import { InProgressAdds } from '#agent/cni/in-progress-adds.ts'
import type { PodSandbox } from '#agent/cni/request.ts'

function sandbox(containerId: string, uid: string | undefined, pod = 'a'): PodSandbox {
  return { containerId, ifname: 'eth0', netns: '/n', namespace: 'default', pod, ...(uid !== undefined && { uid }) }
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
  let news = 0
  const adding = new InProgressAdds({ known: () => known, news: () => news++ })
  const first = sandbox('first', before)
  using stack = new DisposableStack()
  stack.use(adding.begin(first))
  stack.use(adding.begin(sandbox('second', after, pod)))
  expect([adding.isWanted(first), news]).toEqual([!isGivenUp, isGivenUp ? 1 : 0])
  const refuse = (): void => adding.refuseUnwanted(first)
  if (isGivenUp) expect(refuse).toThrow('another sandbox of the pod is asked for: second')
  else expect(refuse).not.toThrow()
})

test('a call that comes twice gives no sandbox up, and an ADD that is over is not wanted', () => {
  const adding = new InProgressAdds({ known: () => undefined, news: () => undefined })
  const [one, again] = [sandbox('same', 'u1'), sandbox('same', 'u1')]
  {
    using stack = new DisposableStack()
    stack.use(adding.begin(one))
    stack.use(adding.begin(again))
    expect([adding.of('same'), adding.isWanted(one), adding.isWanted(again)]).toEqual([[one, again], true, true])
  }
  expect([adding.of('same'), adding.isWanted(one)]).toEqual([[], false])
})

test('work is kept until it is over, however it ends', async () => {
  const adding = new InProgressAdds({ known: () => undefined, news: () => undefined })
  const { promise, reject } = Promise.withResolvers<never>()
  adding.keep(sandbox('one', 'u1'), promise)
  expect([adding.isBusy('one'), adding.isBusy('other')]).toEqual([true, false])
  reject(new Error('no'))
  await promise.catch(() => undefined)
  expect(adding.isBusy('one')).toBe(false)
})
