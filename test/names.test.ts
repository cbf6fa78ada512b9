// SPDX-License-Identifier: Apache-2.0
/** The words of docs/glossary.md, names of log events, and the length of prose and of its sentences. Layer: test. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const MOST_COLUMNS = 120
const MOST_WORDS = 40

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

/** Where `.` or `:` and the like end one, and a capital, code, a link or emphasis begins the next. Each item and each
 * cell of a table is by itself. Code is one word, and so is a list of code: paths and fields have no length. */
function sentencesOf(page: string): readonly string[] {
  return page
    .replaceAll(/^ *```.*\n[^]*?^ *```$|<!-- bench:begin -->[^]*<!-- bench:end -->/gm, '')
    .replaceAll(/`[^`]+`/g, 'Code')
    .replaceAll(/Code(?:(?:,|,? and|,? or)\s+Code)+/g, 'Code')
    .split(/\n\s*\n|\n(?=\s*(?:- |\d+\. |\|))/)
    .flatMap((block) => (block.startsWith('|') ? block.split('|') : [block]))
    .flatMap((block) => block.split(/(?<=[.:;?!][*)"]*)\s+(?=[A-Z*[("])/))
}

function wordsOf(sentence: string): number {
  return sentence.split(/\s+/).filter((word) => word !== '').length
}

test.each([
  ['a full stop ends a sentence, a decimal point does not', 'It takes 1.5 s. Then it ends.', [4, 3]],
  ['a colon ends a sentence before a capital alone', 'This is why: The map is full. Two: of each family one.', [3, 4, 5]],
  ['a closing bracket or emphasis is of the sentence that it ends', '**Why.** It is (so.) It was.', [1, 3, 2]],
  ['a list of code is one word', 'See `a b.ts`, `c.ts` and\n`d.ts` first.', [3]],
  ['items of a list are by themselves', 'Three:\n- one thing\n- and another\n\n1. first', [1, 3, 3, 2]],
  ['cells of a table are by themselves', '| a map | of the node |', [2, 3]],
  ['a block of code is left out', 'Before\n\n```\nmake all of it\n```\n\nafter', [1, 1]],
] as const)('%s', (_title, page, words) => {
  expect(
    sentencesOf(page)
      .map(wordsOf)
      .filter((count) => count > 0),
  ).toEqual(words)
})

test('a sentence of the pages has at most 40 words', () => {
  const long = filesOf('docs/*.md', 'README.md').flatMap(({ file, lines }) =>
    sentencesOf(lines.join('\n'))
      .filter((sentence) => wordsOf(sentence) > MOST_WORDS)
      .map((sentence) => `${file}: ${String(wordsOf(sentence))} words: ${sentence.replaceAll(/\s+/g, ' ')}`),
  )
  expect(long).toEqual([])
})
