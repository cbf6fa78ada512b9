// SPDX-License-Identifier: Apache-2.0
/** binding.d.ts and the built addon name the same things. Layer: test. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import * as native from '#native'
import { memberNames, staticNames } from './surface.ts'

interface Surface {
  readonly functions: string[]
  readonly members: string[]
}

/** "BpfMap.create" is static, "BpfMap#lookup" an instance's. */
function declared(): Surface {
  const path = new URL('../../native/binding.d.ts', import.meta.url)
  const file = ts.createSourceFile('binding.d.ts', readFileSync(path, 'utf8'), ts.ScriptTarget.ES2022)
  const functions = file.statements.filter(ts.isFunctionDeclaration).map((node) => node.name?.text ?? '')
  const members = file.statements.filter(ts.isClassDeclaration).flatMap((node) =>
    node.members.map((member) => {
      const isStatic =
        ts.canHaveModifiers(member) && ts.getModifiers(member)?.some((one) => one.kind === ts.SyntaxKind.StaticKeyword) === true
      const name = member.name !== undefined && ts.isIdentifier(member.name) ? member.name.text : '?'
      return `${node.name?.text ?? ''}${isStatic ? '.' : '#'}${name}`
    }),
  )
  return { functions: functions.sort(), members: members.sort() }
}

function exported(addon: object): Surface {
  const functions: string[] = []
  const members: string[] = []
  for (const [name, value] of Object.entries<object>({ ...addon })) {
    const instance = memberNames(value)
    if (instance === undefined) functions.push(name)
    else members.push(...staticNames(value).map((key) => `${name}.${key}`), ...instance.map((key) => `${name}#${key}`))
  }
  return { functions: functions.sort(), members: members.sort() }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

describe('the surface of the addon', () => {
  test('binding.d.ts declares what the addon exports', () => {
    const addon: unknown = createRequire(import.meta.url)('../../build/Release/netplane_native.node')
    expect(isObject(addon) && exported(addon)).toEqual(declared())
  })

  test('native/index.ts passes all of it on', () => {
    expect(exported(native)).toEqual(declared())
  })
})
