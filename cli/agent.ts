// SPDX-License-Identifier: Apache-2.0
/** What the running agent tells of its rules. Layer: cli. */
import { get } from 'node:http'
import { text } from 'node:stream/consumers'
import { errorText } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import type { RuleNames } from './rules.ts'

export const DEFAULT_AGENT = '127.0.0.1:9099'
const PATH = '/policy/rules'
/** it answers from memory */
const PATIENCE_MS = 2000

/** Never throws: maps and programs can be read without an agent. */
export async function ruleNames(agent: string = DEFAULT_AGENT): Promise<RuleNames> {
  try {
    const parsed: unknown = JSON.parse(await body(`http://${agent}${PATH}`))
    if (!isObject(parsed)) throw new Error('the answer is no object')
    const names = new Map(
      Object.entries(parsed).flatMap(([number, name]) => (typeof name === 'string' ? [[Number(number), name] as const] : [])),
    )
    return { nameOf: (number) => names.get(number), missing: undefined }
  } catch (thrown) {
    return { nameOf: () => undefined, missing: `no agent tells names of rules at ${agent}: ${errorText(thrown)}` }
  }
}

function body(url: string): Promise<string> {
  return new Promise((settle, fail) => {
    const request = get(url, { timeout: PATIENCE_MS }, (response) => {
      if (response.statusCode === 200) settle(text(response))
      else {
        response.resume()
        fail(new Error(`status ${response.statusCode ?? 0}`))
      }
    })
    request.on('timeout', () => request.destroy(new Error(`no answer within ${PATIENCE_MS} ms`)))
    request.on('error', fail)
  })
}
