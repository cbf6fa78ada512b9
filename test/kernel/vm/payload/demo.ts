// SPDX-License-Identifier: Apache-2.0
/** What runs inside a kernel VM with --demo: the demo, whose cluster has real agents. Layer: test. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { LOSSES } from './demo-losses.ts'
import { demoTally } from './demo-tally.ts'

/** An emulated processor of its own takes ten times as long; with half of one it began to lose packets at a tenth of
 * the rates. */
const SLOWNESS = '20'

const demo = spawn(process.execPath, [join(import.meta.dirname, 'dist/demo/main.js')], {
  stdio: ['ignore', 'pipe', 'inherit'],
  env: { ...process.env, NO_COLOR: '1', NETPLANE_LAB_SLOWNESS: SLOWNESS },
})
let text = ''
demo.stdout.setEncoding('utf8').on('data', (chunk: string) => {
  text += chunk
  process.stdout.write(chunk)
})
await once(demo, 'close')
const { passed, failures, leftOut } = demoTally(text, LOSSES)
console.log(`facts: ${leftOut.length} results do not count, for an emulated machine loses packets by itself:`)
for (const line of leftOut) console.log(`  ${line}`)
for (const failure of failures) console.log(`FAIL ${failure}`)
console.log(`${passed} passed, ${failures.length} failed`)
process.exitCode = failures.length === 0 ? 0 : 1
