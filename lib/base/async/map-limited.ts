// SPDX-License-Identifier: Apache-2.0
/** Work on each of a list, so many at once. Layer: lib/base. */
import { allInOrder } from './all-in-order.ts'
import { Semaphore } from './semaphore.ts'

/** Results in the order of the list. All have ended when it ends; of several that fail the first of the list is
 * told. */
export async function mapLimited<T, R>(list: readonly T[], atOnce: number, work: (one: T) => Promise<R>): Promise<readonly R[]> {
  const turns = new Semaphore(atOnce)
  return await allInOrder(list.map((one) => turns.run(() => work(one))))
}
