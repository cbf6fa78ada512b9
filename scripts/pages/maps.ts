// SPDX-License-Identifier: Apache-2.0
/** docs/generated/maps.md: the shared maps and their structs, from the built objects' BTF. Layer: scripts. */
import { fileURLToPath } from 'node:url'
import { BpfObject } from '#native'
import { parseBtf } from '#agent/maps/btf.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { Layout, StructLayout } from '#agent/maps/layout.ts'
import { layoutOf } from '#agent/maps/layout.ts'

const TYPES: Readonly<Record<number, string>> = { 1: 'hash', 2: 'array', 6: 'per-CPU array', 9: 'LRU hash', 11: 'prefix tree' }

interface MapText {
  readonly name: string
  readonly line: string
  readonly structs: readonly StructLayout[]
}

export function mapsPage(): string {
  const maps = ['tc', 'connect'].flatMap(mapsOf)
  const listed = Object.keys(catalogue).flatMap((name) => maps.find((map) => map.name === name) ?? [])
  const structs = new Map(listed.flatMap((map) => map.structs).map((struct) => [struct.name, struct]))
  return `<!-- Made by scripts/generate-docs.ts from the objects' BTF: change bpf/include/maps and bpf/include/types. -->
# Maps

Pinned below \`/sys/fs/bpf/netplane/maps\`. Who writes and reads each, and what its fields mean, stands at its definition in
\`bpf/include/maps\` and \`bpf/include/types\`. Bytes; numbers in network order are \`__be16\` and \`__be32\`, addresses 16 bytes with IPv4 mapped.
An LRU map has at least 256 entries for each CPU of the node.

| map | type | entries | key | value |
| --- | --- | --- | --- | --- |
${listed.map((map) => map.line).join('\n')}
${[...structs.values()].map(structText).join('')}`
}

function mapsOf(objectName: string): MapText[] {
  const object = BpfObject.open(fileURLToPath(new URL(`../../bpf/${objectName}.bpf.o`, import.meta.url)))
  try {
    const btf = parseBtf(object.btf())
    return object
      .maps()
      .filter((map) => map.name in catalogue)
      .map((map) => {
        const [key, value] = [layoutOf(btf, map.keyTypeId), layoutOf(btf, map.valueTypeId)]
        const cells = [`\`${map.name}\``, TYPES[map.type] ?? String(map.type), String(map.maxEntries), typeText(key), typeText(value)]
        return { name: map.name, line: `| ${cells.join(' | ')} |`, structs: [key, value].flatMap(structsOf) }
      })
  } finally {
    object.close()
  }
}

function structsOf(layout: Layout): StructLayout[] {
  if (layout.kind === 'array') return structsOf(layout.of)
  return layout.kind === 'struct' ? [layout, ...layout.fields.flatMap((field) => structsOf(field.layout))] : []
}

function typeText(layout: Layout): string {
  switch (layout.kind) {
    case 'struct':
      return `\`${layout.name}\` (${layout.size})`
    case 'array':
      return `${typeText(layout.of)} × ${layout.length}`
    case 'enum':
      return `\`${layout.name}\``
    case 'int':
      return `\`${layout.typedefs[0] ?? `${layout.size} bytes`}\``
  }
}

function structText(struct: StructLayout): string {
  const rows = struct.fields.map((field) => `| ${field.offset} | \`${field.name}\` | ${typeText(field.layout)} |`)
  return `\n## ${struct.name}: ${struct.size} bytes\n\n| offset | field | type |\n| --- | --- | --- |\n${rows.join('\n')}\n`
}
