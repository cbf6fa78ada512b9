// SPDX-License-Identifier: Apache-2.0
/** Which tables of the old netfilter there are: to list one by its name makes it. Layer: agent/node. */
import { readFileSync } from 'node:fs'

/** None where it has never been used. */
export function legacyTables(file: 'ip_tables_names' | 'ip6_tables_names'): readonly string[] {
  try {
    return readFileSync(`/proc/net/${file}`, 'utf8').split('\n')
  } catch {
    return []
  }
}
