// SPDX-License-Identifier: Apache-2.0
/** Imports point down: the table of docs/architecture.md, enforced. Layer: test. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** A layer and the layers its files may import; its own always. `types:` allows `import type` only. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  'lib/base': [],
  'lib/model': ['lib/base'],
  'lib/obs': ['lib/base', 'lib/model'],
  'lib/kube': ['lib/base', 'lib/model'],
  'lib/store': ['lib/base', 'lib/model'],
  'lib/manifests': ['lib/base', 'lib/model', 'lib/kube', 'lib/store'],
  'agent/compile': ['lib/base', 'lib/model'],
  'agent/maps': ['lib/base'],
  'agent/interfaces': ['lib/base', 'lib/obs', 'native'],
  'agent/dataplane': ['lib/base', 'lib/obs', 'agent/maps', 'agent/interfaces', 'native', 'types:agent/compile'],
  'agent/config': ['lib', 'agent'],
  'agent/node': ['lib', 'agent'],
  agent: ['lib', 'agent', 'native'],
  lab: ['lib'],
  demo: ['lib', 'lab'],
  cli: ['lib', 'native', 'agent/maps', 'agent/compile'],
  bench: ['lib', 'lab', 'native', 'agent/maps', 'test'],
  native: [],
}
/** No I/O, clock or process in what must be pure. */
const PURE = ['lib/model', 'agent/compile']

interface Import {
  readonly from: string
  readonly target: string
  readonly typeOnly: boolean
}

function sources(): string[] {
  const tops = ['lib', 'agent', 'lab', 'demo', 'cli', 'bench', 'native'].filter((top) => existsSync(join(root, top)))
  return tops.flatMap((top) =>
    readdirSync(join(root, top), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts'))
      .map((path) => join(top, path)),
  )
}

function importsOf(file: string): Import[] {
  const text = readFileSync(join(root, file), 'utf8')
  return [
    ...text.matchAll(/^(import|export)\s+(type\s)?(?:[\w*{}\s,$]+\sfrom\s+)?'([^']+)'/gm),
    ...text.matchAll(/\b(import)\((\s*)['"]([^'"]+)['"]\)/g),
  ].map((match) => ({
    from: file,
    target: targetOf(file, match[3] ?? ''),
    typeOnly: match[2]?.trim() === 'type',
  }))
}

/** A path below the root, or the package's name as it stands. */
function targetOf(file: string, specifier: string): string {
  if (specifier === '#native') return 'native/index.ts'
  if (specifier.startsWith('#')) return specifier.slice(1)
  return specifier.startsWith('.') ? relative(root, resolve(root, dirname(file), specifier)) : specifier
}

function layerOf(path: string): string | undefined {
  return Object.keys(ALLOWED)
    .filter((layer) => path.startsWith(`${layer}/`))
    .sort((a, b) => b.length - a.length)[0]
}

function isAllowed(one: Import): boolean {
  const from = layerOf(one.from)
  const isOurs = /^(lib|agent|lab|demo|cli|bench|native|test)\//.test(one.target)
  if (from === undefined || !isOurs) return true
  const to = layerOf(one.target) ?? one.target.split('/')[0] ?? ''
  const matches = (allowed: string) => to === allowed || to.startsWith(`${allowed}/`)
  return (
    to === from ||
    (ALLOWED[from] ?? []).some((allowed) => (allowed.startsWith('types:') ? one.typeOnly && matches(allowed.slice(6)) : matches(allowed)))
  )
}

const files = sources()

describe('layers', () => {
  test('there are files in every layer of the table that exists', () => {
    expect(files.length).toBeGreaterThan(50)
    expect(files.filter((file) => layerOf(file) === undefined)).toEqual([])
  })

  test('imports point down the table', () => {
    const wrong = files.flatMap(importsOf).filter((one) => !isAllowed(one))
    expect(wrong.map((one) => `${one.from} imports ${one.target}`)).toEqual([])
  })

  test('what must be pure imports nothing of the outside', () => {
    const wrong = files.filter((file) => PURE.some((layer) => file.startsWith(`${layer}/`))).flatMap(importsOf)
    expect(wrong.filter((one) => !/^(lib|agent)\//.test(one.target)).map((one) => `${one.from} imports ${one.target}`)).toEqual([])
  })

  test('late imports go by the package, which compiled files resolve as well', () => {
    // the compiler leaves a relative specifier as it is where it also lowers `using`
    expect(files.filter((file) => /\bimport\('\./.test(readFileSync(join(root, file), 'utf8')))).toEqual([])
  })

  test('a file begins with its licence and one sentence that names its layer', () => {
    const wrong = files.filter(
      (file) => !/^(#!.*\n)?\/\/ SPDX-License-Identifier: Apache-2\.0\n\/\*\*[\s\S]*?Layer: /.test(readFileSync(join(root, file), 'utf8')),
    )
    expect(wrong).toEqual([])
  })

  test('nothing unfinished or skipped', () => {
    const marks = /\b(TODO|FIXME)\b|@ts-(ignore|expect-error|nocheck)|\b(test|it|describe)\.(skip|only|todo)\b/
    const tests = readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' }).filter(
      (path) => path.endsWith('.ts') && path !== 'layers.test.ts',
    )
    const all = [...files, ...tests.map((path) => join('test', path))]
    expect(
      all.filter((file) =>
        readFileSync(join(root, file), 'utf8')
          .split('\n')
          .some((line) => !/^\s*(\*|\/\/|\/\*)/.test(line) && marks.test(line)),
      ),
    ).toEqual([])
  })
})
