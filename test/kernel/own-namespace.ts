// SPDX-License-Identifier: Apache-2.0
/** Refuses to run where devices are in use: these tests make, change and delete devices. Layer: test. */
import { networkInterfaces } from 'node:os'

export function setup(): void {
  const used = Object.entries(networkInterfaces()).filter(([, addresses = []]) => addresses.some(({ internal }) => !internal))
  if (used.length === 0) return
  const names = used.map(([name]) => name).join(', ')
  throw new Error(
    `kernel tests need a network namespace of their own (here is ${names}): make test makes one, or run them under unshare --net --mount`,
  )
}
