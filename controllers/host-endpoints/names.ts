// SPDX-License-Identifier: Apache-2.0
/** Names of automatic host endpoints, and how they are recognised. Layer: controllers (pure). */
import { sha256Text } from '#lib/base/hash.ts'

const SUFFIX = 'auto-hep'
const LONGEST = 253
/** As the API server takes names of objects. */
const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/

/** "node1-auto-hep", "node1-db-eth0-auto-hep"; of what is no name of an object, or too long for one, its hash. */
export function endpointName(...parts: readonly string[]): string {
  const name = [...parts, SUFFIX].join('-')
  if (name.length <= LONGEST && NAME.test(name)) return name
  const hashed = sha256Text(name).replace(/[-_.]/g, '').toLowerCase()
  return `${hashed}-${SUFFIX}`.slice(0, LONGEST)
}
