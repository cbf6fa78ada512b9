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
    const { status, body } = await agentPage(agent, PATH)
    if (status !== 200) throw new Error(`status ${status}`)
    const parsed: unknown = JSON.parse(body)
    if (!isObject(parsed)) throw new Error('the answer is no object')
    const names = new Map(
      Object.entries(parsed).flatMap(([number, name]) => (typeof name === 'string' ? [[Number(number), name] as const] : [])),
    )
    return { nameOf: (number) => names.get(number), missing: undefined }
  } catch (thrown) {
    return { nameOf: () => undefined, missing: `no agent tells names of rules at ${agent}: ${errorText(thrown)}` }
  }
}

/** One of the pages that it serves. Rejects when no agent answers. */
export function agentPage(agent: string, path: string): Promise<{ readonly status: number; readonly body: string }> {
  return new Promise((settle, fail) => {
    const request = get(`http://${agent}${path}`, { timeout: PATIENCE_MS }, (response) => {
      text(response).then((body) => {
        settle({ status: response.statusCode ?? 0, body })
      }, fail)
    })
    request.on('timeout', () => request.destroy(new Error(`no answer within ${PATIENCE_MS} ms`)))
    request.on('error', fail)
  })
}
