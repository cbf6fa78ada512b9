// SPDX-License-Identifier: Apache-2.0
/** Links between pages lead to a file and a heading that are there. Layer: test. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'

const pages = execFileSync('git', ['ls-files', '*.md'], { cwd: packageRoot(), encoding: 'utf8' }).split('\n').filter(Boolean)

/** Without what is in blocks of code. */
function textOf(page: string): string {
  return readFileSync(join(packageRoot(), page), 'utf8').replaceAll(/^ *```[^]*?^ *```$/gm, '')
}

/** As they are addressed: small letters, hyphens for spaces. */
function headingsOf(page: string): ReadonlySet<string> {
  const titles = [...textOf(page).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) => title.trim().toLowerCase())
  return new Set(titles.map((title) => title.replaceAll(/[^\w\- ]/g, '').replaceAll(' ', '-')))
}

interface Link {
  readonly page: string
  readonly target: string
}

function linksOf(page: string): readonly Link[] {
  const targets = [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
  return targets.filter((target) => !/^\w+:/.test(target)).map((target) => ({ page, target }))
}

function isDead({ page, target }: Link): boolean {
  const [path = '', heading] = target.split('#')
  const file = path === '' ? page : normalize(join(dirname(page), path))
  if (!existsSync(join(packageRoot(), file))) return true
  return heading !== undefined && file.endsWith('.md') && !headingsOf(file).has(heading)
}

test('every link of a page leads somewhere', () => {
  const links = pages.flatMap(linksOf)
  expect(links.length).toBeGreaterThan(100)
  expect(links.filter(isDead)).toEqual([])
})
