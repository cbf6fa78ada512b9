// SPDX-License-Identifier: Apache-2.0
/** The words of docs/glossary.md, names of log events, and the length of prose. Layer: test. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const MOST_COLUMNS = 120

function filesOf(...patterns: readonly string[]): readonly { readonly file: string; readonly lines: readonly string[] }[] {
  const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', ...patterns], {
    cwd: root,
    encoding: 'utf8',
  })
  return listed
    .split('\n')
    .filter((file) => file !== '')
    .map((file) => ({ file, lines: readFileSync(join(root, file), 'utf8').split('\n') }))
}

test('no exported name is one that the glossary has retired', () => {
  const page = readFileSync(join(root, 'docs/glossary.md'), 'utf8').split('## Retired names')[1] ?? ''
  const retired = new Set([...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name))
  expect(retired.size).toBeGreaterThan(50)
  const exported = /^export (?:default )?(?:abstract )?(?:async )?(?:const|let|function\*?|class|interface|type|enum) (\w+)/
  const back = filesOf('*.ts').flatMap(({ file, lines }) =>
    lines.flatMap((line) => {
      const [, name] = exported.exec(line) ?? []
      return name !== undefined && retired.has(name) ? [`${file}: ${name}`] : []
    }),
  )
  expect(back).toEqual([])
})

test('no log event has a name that the changelog has retired', () => {
  const page = readFileSync(join(root, 'CHANGELOG.md'), 'utf8').split('| event before | event |')[1] ?? ''
  const retired = [...page.matchAll(/^\| `([\w.-]+)` \| `([\w.-]+)` \|/gm)].map(([, before = '']) => before)
  expect(retired.length).toBeGreaterThan(50)
  const back = filesOf('agent/*.ts', 'lib/*.ts', 'test/*.ts', 'soak/*.ts', 'docs/*.md').flatMap(({ file, lines }) =>
    lines.flatMap((line) =>
      retired.filter((event) => ["'", '`'].some((mark) => line.includes(`${mark}${event}${mark}`))).map((event) => `${file}: ${event}`),
    ),
  )
  expect(back).toEqual([])
})

/** Tables, code and what is drawn are as wide as they are. */
function proseOf(page: readonly string[]): readonly string[] {
  let inCode = false
  return page.filter((line) => {
    if (line.trimStart().startsWith('```')) inCode = !inCode
    return !inCode && !line.startsWith('|')
  })
}

test('a line of prose has at most 120 columns, in pages and comments', () => {
  const pages = filesOf('*.md', ':!docs/generated', ':!docs/benchmarks.md').map(({ file, lines }) => ({ file, lines: proseOf(lines) }))
  const comments = filesOf('*.ts', '*.mjs', '*.c', '*.h', '*.cc').map(({ file, lines }) => ({
    file,
    lines: lines.filter((line) => /^\s*(\/\/|\/\*|\*( |\/|$))/.test(line) && !/eslint-disable|https?:/.test(line)),
  }))
  const long = [...pages, ...comments].flatMap(({ file, lines }) =>
    lines.filter((line) => line.replaceAll('\t', '        ').length > MOST_COLUMNS).map((line) => `${file}: ${line}`),
  )
  expect(long).toEqual([])
})
