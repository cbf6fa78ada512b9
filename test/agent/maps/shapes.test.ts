// SPDX-License-Identifier: Apache-2.0
/** Our shapes, catalogue and enums against the objects that are shipped: drift fails here, not on a node.
 * Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { enumValues, findType, typeById } from '#agent/maps/btf.ts'
import * as flags from '#lib/base/bpf-constants.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import { bind, bindKey } from '#agent/maps/codec.ts'
import type { Field } from '#agent/maps/field-kinds.ts'
import { layoutOf, structLayout } from '#agent/maps/layout.ts'
import { nodeCfg } from '#agent/maps/shapes.ts'
import type { Compiled } from '../../support/compiled.ts'
import { builtObject, declaredMaps, INCLUDE } from '../../support/compiled.ts'

const objects: readonly (readonly [string, Compiled])[] = ['tc', 'connect'].map((name) => [name, builtObject(name)])

describe.each(objects)('%s', (_, object) => {
  test('every shared map is as the catalogue says', () => {
    const found: string[] = []
    for (const [name, ids] of declaredMaps(object.btf)) {
      const definition = Object.values(catalogue).find((candidate) => candidate.name === name)
      if (definition === undefined) continue
      const [key, value]: [Field<unknown>, Field<unknown>] = [definition.key, definition.value]
      expect(bindKey(key, layoutOf(object.btf, ids.keyTypeId)).size, name).toBeGreaterThan(0)
      expect(bind(value, layoutOf(object.btf, ids.valueTypeId)).size, name).toBeGreaterThan(0)
      found.push(name)
    }
    expect(found).toEqual(expect.arrayContaining(['np_frontends', 'np_backends', 'np_counters']))
  })

  test('the knobs', () => {
    expect(bind(nodeCfg, structLayout(object.btf, 'node_cfg')).size).toBe(168)
    expect(findType(object.btf, 'section', '.rodata')?.variables.map(({ type }) => typeById(object.btf, type).name)).toContain('cfg')
  })

  test('the names of all counters', () => {
    expect(enumValues(object.btf, 'drop').get('DROP_NONE')).toBe(0)
    expect(enumValues(object.btf, 'counter').get('COUNT_FLOW_NEW')).toBe(0)
  })
})

test('the numbers that rows carry are those of the enums', () => {
  const enums = [
    ...['frontend_flag', 'live_flag', 'range_set', 'addr_kind', 'addr_flag', 'source_check', 'stray_service', 'pod_to_host', 'iface_kind'],
    ...['dimension', 'ports_flag', 'rule_bits', 'rule_action', 'host_view', 'failsafe_direction'],
  ]
  const {
    MAGLEV_SIZE,
    OWN_SLOTS,
    RULE_WORDS,
    RULES_PER_BLOCK,
    RULE_CELLS,
    SMALL_CLASSES,
    PORTS_PAGE,
    SURE_NOT,
    FAILSAFE_PORTS,
    UNTRACKED_DEVICES,
    RULE_OF_CLUSTER,
    ...mirrored
  } = flags
  expect(MAGLEV_SIZE * RULE_WORDS, 'the codec compares them with C').toBeGreaterThan(0)
  expect(readFileSync(join(INCLUDE, 'types/lb.h'), 'utf8')).toContain(`#define OWN_SLOTS 0x${OWN_SLOTS.toString(16)}\n`)
  const header = readFileSync(join(INCLUDE, 'types/policy.h'), 'utf8')
  expect(header).toContain(`#define PORTS_PAGE 0x${PORTS_PAGE.toString(16)}`)
  expect([RULE_CELLS, header.includes('#define RULE_CELLS (RULE_WORDS * 5)')]).toEqual([RULE_WORDS * 5, true])
  expect([SMALL_CLASSES, header.includes('#define SMALL_CLASSES (RULE_CELLS - 4)')]).toEqual([RULE_CELLS - 4, true])
  expect(header).toContain(`#define SURE_NOT 0x${SURE_NOT.toString(16)}\n`)
  expect(header).toContain(`#define FAILSAFE_PORTS ${FAILSAFE_PORTS}\n`)
  expect(header).toContain(`#define UNTRACKED_DEVICES ${UNTRACKED_DEVICES}\n`)
  expect(header).toContain(`#define RULE_OF_CLUSTER ${RULE_OF_CLUSTER}\n`)
  expect([RULES_PER_BLOCK, header.includes('#define RULES_PER_BLOCK (RULE_WORDS * 64)')]).toEqual([RULE_WORDS * 64, true])
  for (const [, { btf }] of objects) {
    const numbers = new Map(enums.flatMap((name) => [...enumValues(btf, name)]))
    expect(Object.fromEntries(numbers)).toEqual(mirrored)
  }
})

test('every map of the catalogue is in some object', () => {
  const declared = new Set(objects.flatMap(([, object]) => [...declaredMaps(object.btf).keys()]))
  expect(Object.keys(catalogue).filter((name) => !declared.has(name))).toEqual([])
})

test('names in the catalogue are the names of the maps', () => {
  for (const [name, definition] of Object.entries(catalogue)) expect(definition.name).toBe(name)
})
