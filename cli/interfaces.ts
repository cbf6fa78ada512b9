// SPDX-License-Identifier: Apache-2.0
/** Names of interfaces by their index, of the network namespace we run in. Layer: cli. */
import { readFileSync } from 'node:fs'
import { ifindexOf } from '#native'

/** As they are now. One that has gone is "#12". */
export function interfaceNames(): (index: number) => string {
  // unlike /sys/class/net this is always the reader's own namespace
  const names = [...readFileSync('/proc/net/dev', 'utf8').matchAll(/^ *(\S+):/gm)].map(([, name = '']) => name)
  const byIndex = new Map(names.map((name) => [ifindexOf(name), name]))
  return (index) => byIndex.get(index) ?? `#${index}`
}
