// SPDX-License-Identifier: Apache-2.0
/** Our shapes, catalogue and enums against the objects that are shipped: drift fails here, not on a node. Layer: test. */
import { describe, expect, test } from 'vitest'
import type { BtfType } from '#agent/maps/btf.ts'
import { enumValues, findType, typeById } from '#agent/maps/btf.ts'
import * as flags from '#lib/base/flags.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { bind, bindKey } from '#agent/maps/codec.ts'
import type { Field } from '#agent/maps/kinds.ts'
import { layoutOf, structLayout } from '#agent/maps/layout.ts'
import { nodeCfg } from '#agent/maps/shapes.ts'
import type { Compiled } from '../../support/compiled.ts'
import { builtObject } from '../../support/compiled.ts'

const objects: readonly (readonly [string, Compiled])[] = ['workload', 'host', 'connect'].map((name) => [name, builtObject(name)])

/** Name of each map → type ids of its key and value, 0 when it declares none. */
function declaredMaps({ btf }: Compiled): Map<string, { key: number; value: number }> {
  const maps = new Map<string, { key: number; value: number }>()
  for (const { type } of findType(btf, 'section', '.maps')?.variables ?? []) {
    const variable = typeById(btf, type)
    if (variable.kind !== 'variable') continue
    const definition = typeById(btf, variable.type)
    const target = (field: string): number =>
      definition.kind === 'struct' ? pointee(btf.types, definition.members.find(({ name }) => name === field)?.type) : 0
    maps.set(variable.name, { key: target('key'), value: target('value') })
  }
  return maps
}

function pointee(types: readonly BtfType[], id: number | undefined): number {
  const type = id === undefined ? undefined : types[id]
  return type?.kind === 'pointer' ? type.type : 0
}

describe.each(objects)('%s', (_, object) => {
  test('every shared map is as the catalogue says', () => {
    const found: string[] = []
    for (const [name, ids] of declaredMaps(object)) {
      const definition = Object.values(catalogue).find((candidate) => candidate.name === name)
      if (definition === undefined) continue
      const [key, value]: [Field<unknown>, Field<unknown>] = [definition.key, definition.value]
      expect(bindKey(key, layoutOf(object.btf, ids.key)).size, name).toBeGreaterThan(0)
      expect(bind(value, layoutOf(object.btf, ids.value)).size, name).toBeGreaterThan(0)
      found.push(name)
    }
    expect(found).toEqual(expect.arrayContaining(['np_frontends', 'np_backends', 'np_counters']))
  })

  test('the knobs', () => {
    expect(bind(nodeCfg, structLayout(object.btf, 'node_cfg')).size).toBe(136)
    expect(findType(object.btf, 'section', '.rodata')?.variables.map(({ type }) => typeById(object.btf, type).name)).toContain('cfg')
  })

  test('the names of all counters', () => {
    expect(enumValues(object.btf, 'drop').get('DROP_NONE')).toBe(0)
    expect(enumValues(object.btf, 'counter').get('COUNT_FLOW_NEW')).toBe(0)
  })
})

test('the numbers that rows carry are those of the enums', () => {
  for (const [, { btf }] of objects) {
    const numbers = new Map(['frontend_flag', 'addr_kind', 'iface_kind'].flatMap((name) => [...enumValues(btf, name)]))
    expect(Object.fromEntries(numbers)).toEqual({ ...flags })
  }
})

test('every map of the catalogue is in some object', () => {
  const declared = new Set(objects.flatMap(([, object]) => [...declaredMaps(object).keys()]))
  expect(Object.keys(catalogue).filter((name) => !declared.has(name))).toEqual([])
})

test('names in the catalogue are the names of the maps', () => {
  for (const [name, definition] of Object.entries(catalogue)) expect(definition.name).toBe(name)
})
