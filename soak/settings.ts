// SPDX-License-Identifier: Apache-2.0
/** What the programs of a node were loaded with, and what its configuration says. Layer: soak. */
import { BpfMap, btfById } from '#native'
import type { Configuration } from '#agent/compile/desired.ts'
import type { Features } from '#agent/dataplane/programs/kernel-features.ts'
import { nodeConfig } from '#agent/dataplane/programs/node-config.ts'
import { findType, parseBtf, typeById } from '#agent/maps/btf.ts'
import { bind } from '#agent/maps/codec.ts'
import { structLayout } from '#agent/maps/layout.ts'
import { nodeCfg, type NodeCfg } from '#agent/maps/shapes.ts'
import { decodeBytes, encodeBytes } from '#agent/maps/byte-rows.ts'
import { errorCode } from '#lib/base/errors.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'

/** "workload.rodata: dsr is 0, not 1": a line for each setting that is another. `maps`: ids of the maps that
 * programs use, of which those with settings are looked at. */
export function otherSettings(maps: Iterable<number>, configuration: Configuration, features: Features): string[] {
  return [...maps].flatMap((id) => {
    const map = openMap(id)
    if (map === undefined) return ['programs are being replaced']
    try {
      const { name, btfId } = map.info()
      if (!name.endsWith('.rodata')) return []
      const btf = parseBtf(btfById(btfId))
      const variables = findType(btf, 'section', '.rodata')?.variables ?? []
      const cfg = variables.find((variable) => typeById(btf, variable.type).name === 'cfg')
      const bytes = map.lookup(Buffer.alloc(map.keyBytes))
      if (cfg === undefined || bytes === undefined) return [`${name}: has no settings`]
      const codec = bind(nodeCfg, structLayout(btf, 'node_cfg'))
      const actual = decodeBytes(codec, bytes.subarray(cfg.offset, cfg.offset + codec.size))
      const wanted = decodeBytes(codec, encodeBytes(codec, nodeConfig(configuration, features)))
      return differing(wanted, actual).map((line) => `${name}: ${line}`)
    } finally {
      map.close()
    }
  })
}

/** The network namespace's own cookie is what only the node itself knows. */
function differing(wanted: NodeCfg, actual: NodeCfg): string[] {
  const before = new Map<string, unknown>(Object.entries(actual))
  return Object.entries(wanted)
    .filter(([field, value]) => field !== 'netns' && !deepEqual(before.get(field), value))
    .map(([field, value]) => `${field} is ${String(before.get(field))}, not ${String(value)}`)
}

/** undefined when it has gone meanwhile */
function openMap(id: number): BpfMap | undefined {
  try {
    return BpfMap.openId(id)
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  }
}
