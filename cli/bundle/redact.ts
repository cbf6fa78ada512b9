// SPDX-License-Identifier: Apache-2.0
/** Objects of a cluster without what only their owners may know. Layer: cli (pure). */
import { isObject } from '#lib/base/object.ts'
import { GONE, withoutSecrets } from './secrets.ts'

/** Fields that are called so. */
const SECRET_FIELD = /(token|password|passwd|secret|private[-_]?key|client-key-data|api[-_]?key|authorization)$/i
/** Variables and flags of containers, of which the name alone tells. */
const SECRET_NAME = /token|password|passwd|secret|credential|auth|key/i

/** Who has written which field; and all of the object once more, as text. */
const DROPPED = new Set(['managedFields', 'kubectl.kubernetes.io/last-applied-configuration'])

export function redacted(value: unknown): unknown {
  if (typeof value === 'string') return withoutSecrets(value)
  if (Array.isArray(value)) return value.map((one: unknown, at) => (isSecretFlag(value[at - 1]) ? GONE : redacted(one)))
  if (!isObject(value)) return value
  const isVariable = typeof value['name'] === 'string' && SECRET_NAME.test(value['name']) && typeof value['value'] === 'string'
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !DROPPED.has(key))
      .map(([key, part]) => [key, SECRET_FIELD.test(key) || (isVariable && key === 'value') ? GONE : redacted(part)]),
  )
}

/** Its value is the next word of the command line. */
function isSecretFlag(word: unknown): boolean {
  return typeof word === 'string' && /^--?[\w-]+$/.test(word) && SECRET_NAME.test(word)
}
