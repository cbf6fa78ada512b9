// SPDX-License-Identifier: Apache-2.0
/** Writes the tables of bench/results/latest.json into docs/benchmarks.md, between its markers. Layer: tools. */
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseResults } from '../bench/base/results.ts'
import { pageOf } from '../bench/base/page.ts'
import { between } from '../bench/base/markers.ts'

const path = (name: string): string => fileURLToPath(new URL(`../${name}`, import.meta.url))

const results = parseResults(readFileSync(path('bench/results/latest.json'), 'utf8'))
const page = readFileSync(path('docs/benchmarks.md'), 'utf8')
writeFileSync(path('docs/benchmarks.md'), between(page, 'bench', pageOf(results)))
