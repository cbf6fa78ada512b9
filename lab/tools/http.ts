// SPDX-License-Identifier: Apache-2.0
/** Asks a URL until it answers with success, prints the body: for health and metrics inside a namespace. Layer: lab
 * (tool).
 *
 * http [--wait-ms N] URL. Exit 0: status 200; 1: another status (body on standard output); 2: no answer. */
import { parseArgs } from 'node:util'
import { longer } from '../slowness.ts'
import { within } from '../deadline.ts'

const { values, positionals } = parseArgs({ options: { 'wait-ms': { type: 'string', default: '0' } }, allowPositionals: true })
const end = performance.now() + Number(values['wait-ms'])
const url = positionals[0] ?? ''

async function ask(): Promise<{ code: number; text: string }> {
  try {
    return await within(longer(2000), async (signal) => {
      const response = await fetch(url, { signal })
      return { code: response.ok ? 0 : 1, text: await response.text() }
    })
  } catch (thrown) {
    const cause = thrown instanceof Error ? (thrown.cause ?? thrown) : thrown
    return { code: 2, text: `${url}: ${cause instanceof Error ? cause.message : String(cause)}\n` }
  }
}

let answer = await ask()
while (answer.code !== 0 && performance.now() < end) {
  await new Promise((resolve) => setTimeout(resolve, 30))
  answer = await ask()
}
const out = answer.code === 2 ? process.stderr : process.stdout
out.write(answer.text)
process.exitCode = answer.code
