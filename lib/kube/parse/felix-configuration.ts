// SPDX-License-Identifier: Apache-2.0
/** Raw FelixConfiguration → model: plain JSON, copied, so that nothing else of the file is kept. Layer: lib/kube. */
import { isObject } from '../../base/object.ts'
import type { FelixConfiguration, Json } from '../../model/felix-configuration.ts'
import { asRecord, FieldError, record } from './fields.ts'
import type { ParseInput } from './fields.ts'

export function parseFelixConfiguration(input: ParseInput): FelixConfiguration {
  if (input.name !== 'default' && !input.name.startsWith('node.')) throw new FieldError('metadata.name', 'must be default or node.<name>')
  const { generation } = record(input.raw, 'metadata')
  return {
    ...{ kind: 'FelixConfiguration', namespace: '', name: input.name, spec: plainJson(record(input.raw, 'spec'), 'spec') },
    ...(typeof generation === 'number' ? { generation } : {}),
  }
}

/** Fields that are null count as missing. Throws FieldError. */
export function plainJson(value: unknown, path: string): FelixConfiguration['spec'] {
  const fields = Object.entries(asRecord(value)).filter(([, part]) => part !== null)
  // fromEntries defines fields: an assignment to "__proto__" would not
  return Object.fromEntries(fields.map(([key, part]) => [key, json(part, path === '' ? key : `${path}.${key}`, 0)]))
}

const DEEPEST = 8

function json(value: unknown, path: string, depth: number): Json {
  if (value === null || typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value
  if (depth >= DEEPEST) throw new FieldError(path, 'is nested too deeply')
  if (Array.isArray(value)) return value.map((part, at) => json(part, `${path}[${at}]`, depth + 1))
  if (!isObject(value)) throw new FieldError(path, 'must be plain JSON')
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, json(part, `${path}.${key}`, depth + 1)]))
}
