// SPDX-License-Identifier: Apache-2.0
/** The maps that another version of the headers would make, loaded. Layer: test. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BpfObject } from '#native'
import { compileTo, INCLUDE } from './compiled.ts'

/** Pieces of today's headers, without comments and indentation, and what stands there in the other version. */
export type HeaderEdit = readonly (readonly [today: string, other: string])[]

/** The caller closes it. Throws when a piece is not in the headers. */
export async function otherMaps(edit: HeaderEdit, sizes: Readonly<Record<string, number>>): Promise<BpfObject> {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-other-'))
  try {
    compileTo(join(folder, 'other.o'), `#include <linux/bpf.h>\n${otherHeader(edit)}\n${ANCHORS}`)
    const object = BpfObject.open(join(folder, 'other.o'))
    for (const [map, size] of Object.entries(sizes)) object.setMaxEntries(map, size)
    await object.load()
    return object
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const ANCHORS = 'enum counter counter_anchor; enum drop drop_anchor; char LICENSE[] __attribute__((section("license"))) = "GPL";'

const MAPS = ['define', 'services', 'packets', 'counters'].map((name) => `maps/${name}.h`)

function otherHeader(edit: HeaderEdit): string {
  const today = ['types/reason.h', 'types/lb.h', 'types/policy.h', 'types/conntrack.h', ...MAPS]
    .map((file) => readFileSync(join(INCLUDE, file), 'latin1'))
    .join('\n')
    .replaceAll(/#include ".*"/g, '')
    .replaceAll(/\/\*[^]*?\*\//g, '')
    .replaceAll(/[ \t]+/g, ' ')
    .replaceAll(/ ?\n[\n ]*/g, '\n')
  const other = edit.reduce((text, [from, to]) => {
    if (!text.includes(from)) throw new Error(`not in the headers: ${from}`)
    return text.replace(from, to)
  }, today)
  return other.replaceAll(/_Static_assert\([^;]*;/g, '')
}
