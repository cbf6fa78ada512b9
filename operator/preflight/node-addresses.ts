// SPDX-License-Identifier: Apache-2.0
/** Where other nodes reach a node. Layer: operator (pure). */
import { atOnce } from '#lib/base/async/slices.ts'
import { formatAddr } from '#lib/base/ip.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { inside } from '#lib/kube/parse/fields.ts'
import { nodeAddresses as addressesIn } from '#lib/kube/parse/node.ts'

/** As agents take them from its status. */
export function nodeAddresses(node: ApiObject): readonly string[] {
  const addresses = inside(node, 'status', (status) => atOnce(addressesIn(status, { refuse: () => undefined })))
  return addresses.map(formatAddr)
}
