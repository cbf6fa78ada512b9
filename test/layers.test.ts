// SPDX-License-Identifier: Apache-2.0
/** Imports point down: the table of docs/architecture.md, enforced. Layer: test. */
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** A layer and the layers its files may import; its own always. `types:` allows `import type` only. */
const ALLOWED = tableOf(readFileSync(join(root, 'docs/architecture.md'), 'utf8'))
const TOPS = [
  'lib',
  'agent',
  'lab',
  'demo',
  'cli',
  'operator',
  'controllers',
  'flows',
  'upgrade',
  'bench',
  'soak',
  'testkit',
  'native',
  'scripts',
]
/** No I/O, clock or process in what must be pure. */
const PURE = ['lib/model', 'lib/policy', 'lib/preflight', 'agent/compile', 'upgrade/stored', 'upgrade/edits']

interface Import {
  readonly from: string
  readonly target: string
  readonly typeOnly: boolean
}

/** Rows of the table of layers: the names in the first cell, and those in the last, by each of the first. */
function tableOf(page: string): ReadonlyMap<string, readonly string[]> {
  const section = /^## Layers$([\s\S]*?)^## /m.exec(page)?.[1] ?? ''
  const rows = [...section.matchAll(/^\| (`.*?) \|.*\| ([^|]*) \|$/gm)]
  return new Map(
    rows.flatMap(([, layers = '', imports = '']) => {
      const allowed = [...imports.matchAll(/(types of )?`([^`]+)`/g)].map(([, types, name = '']) =>
        types === undefined ? name : `types:${name}`,
      )
      return [...layers.matchAll(/`([^`]+)`/g)].map(([, layer = '']) => [layer, allowed] as const)
    }),
  )
}

function sources(): string[] {
  return TOPS.flatMap((top) =>
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
  return [...ALLOWED.keys()].filter((layer) => path.startsWith(`${layer}/`)).sort((a, b) => b.length - a.length)[0]
}

function isAllowed(one: Import): boolean {
  const from = layerOf(one.from)
  const isOurs = [...TOPS, 'test'].includes(one.target.split('/')[0] ?? '')
  if (from === undefined || !isOurs) return true
  const to = layerOf(one.target) ?? one.target.split('/')[0] ?? ''
  const matches = (allowed: string) => to === allowed || to.startsWith(`${allowed}/`)
  return (
    to === from ||
    (ALLOWED.get(from) ?? []).some((allowed) =>
      allowed.startsWith('types:') ? one.typeOnly && matches(allowed.slice(6)) : matches(allowed),
    )
  )
}

const files = sources()

describe('layers', () => {
  test('every layer of the table has files, and every file a layer', () => {
    expect(ALLOWED.size).toBeGreaterThan(10)
    expect([...new Set(files.map(layerOf))].sort()).toEqual([...ALLOWED.keys()].sort())
  })

  test('the table names nothing that is not there', () => {
    const named = [...ALLOWED.values()].flat().map((name) => name.replace('types:', ''))
    expect(named.filter((name) => !existsSync(join(root, name)))).toEqual([])
  })

  test('every import is found, and one that points up the table is told', () => {
    const text = (file: string): string => readFileSync(join(root, file), 'utf8')
    const forms = /^(import|export)?.*\bfrom '[^']+'$|^import '|\bimport\(\s*['"]/gm
    expect(files.filter((file) => importsOf(file).length !== (text(file).match(forms) ?? []).length)).toEqual([])
    expect(files.flatMap(importsOf).length).toBeGreaterThan(files.length)
    const upwards = { from: 'lib/base/ip.ts', target: 'agent/main.ts', typeOnly: false }
    expect([isAllowed(upwards), isAllowed({ ...upwards, from: 'agent/main.ts', target: 'lib/base/ip.ts' })]).toEqual([false, true])
  })

  test('imports point down the table', () => {
    const wrong = files.flatMap(importsOf).filter((one) => !isAllowed(one))
    expect(wrong.map((one) => `${one.from} imports ${one.target}`)).toEqual([])
  })

  test('only tests import from test/, and the table allows it to no layer', () => {
    const wrong = files.flatMap(importsOf).filter((one) => one.target.startsWith('test/'))
    expect(wrong.map((one) => `${one.from} imports ${one.target}`)).toEqual([])
    const reaches = (from: string) => isAllowed({ from, target: 'test/support/build.ts', typeOnly: true })
    expect([...ALLOWED.keys()].filter((layer) => reaches(`${layer}/any.ts`))).toEqual([])
  })

  test('what must be pure imports nothing of the outside', () => {
    const wrong = files.filter((file) => PURE.some((layer) => file.startsWith(`${layer}/`))).flatMap(importsOf)
    expect(wrong.filter((one) => !/^(lib|agent|upgrade)\//.test(one.target)).map((one) => `${one.from} imports ${one.target}`)).toEqual([])
  })

  test('a folder of more than 20 files is one that docs/architecture.md gives a reason for', () => {
    const section = /^## Large folders$([\s\S]*?)^## /m.exec(readFileSync(join(root, 'docs/architecture.md'), 'utf8'))?.[1] ?? ''
    const excused = [...section.matchAll(/^\| `(.*?)` \| (?=\S)/gm)].map(([, folder = '']) => folder)
    expect(excused.length).toBeGreaterThan(0)
    const counts = new Map<string, number>()
    for (const top of [...TOPS, 'bpf', 'cni', 'deploy', 'docs', 'test'])
      for (const path of readdirSync(join(root, top), { recursive: true, encoding: 'utf8' })) {
        if (!/\.(ts|mjs|c|cc|h|sh|ya?ml|json|txt|md)$/.test(path)) continue
        const folder = dirname(join(top, path))
        counts.set(folder, (counts.get(folder) ?? 0) + 1)
      }
    expect([...counts].filter(([folder, count]) => count > 20 && !excused.includes(folder))).toEqual([])
    expect(excused.filter((folder) => !counts.has(folder))).toEqual([])
  })

  test('late imports go by the package, which compiled files resolve as well', () => {
    // the compiler leaves a relative specifier as it is where it also lowers `using`
    expect(files.filter((file) => /\bimport\('\./.test(readFileSync(join(root, file), 'utf8')))).toEqual([])
  })

  test('a file begins with its licence and one sentence that names its layer', () => {
    // what is generated has those of what it is generated from
    const written = files.filter((file) => !file.endsWith('_pb.ts'))
    const wrong = written.filter(
      (file) => !/^(#!.*\n)?\/\/ SPDX-License-Identifier: Apache-2\.0\n\/\*\*[\s\S]*?Layer: /.test(readFileSync(join(root, file), 'utf8')),
    )
    expect(wrong).toEqual([])
  })

  test('no file has unfinished or skipped parts', () => {
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
