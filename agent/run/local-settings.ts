// SPDX-License-Identifier: Apache-2.0
/** Settings that the agent is started with: its environment, and the file of --config. Layer: agent. */
import { readFileSync } from 'node:fs'
import { ConfigError, errorCode, errorText } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import { readManifest } from '#lib/manifests/read.ts'
import { plainJson } from '#lib/kube/parse/felix-configuration.ts'
import { layerFromEnvironment, type ConfigLayer } from '../config/layers.ts'

/** In order of precedence. Throws ConfigError when the file cannot be read; `resolveConfig` judges the fields. */
export function localSettings(file: string | undefined, environment: Readonly<Record<string, string | undefined>>): readonly ConfigLayer[] {
  const said = layerFromEnvironment(environment)
  return [...(Object.keys(said.spec).length === 0 ? [] : [said]), ...(file === undefined ? [] : [saidByFile(file)])]
}

/** A mapping of fields, or a FelixConfiguration. */
function saidByFile(file: string): ConfigLayer {
  const read = readManifest(file, textOf(file))
  if (read.kind === 'broken') throw new ConfigError('--config', `${file}${read.line === undefined ? '' : `:${read.line}`} ${read.reason}`)
  const [only, ...others] = read.objects
  if (others.length > 0 || !isObject(only?.value ?? {})) throw new ConfigError('--config', `${file} must be one mapping of fields`)
  const value = isObject(only?.value) ? only.value : {}
  const isManifest = value['kind'] === 'FelixConfiguration'
  const fields = isManifest ? (value['spec'] ?? {}) : value
  try {
    const spec = plainJson(fields, isManifest ? 'spec' : '')
    return { origin: 'file', ref: `file ${file}`, spec, pathOf: (field) => (isManifest ? `spec.${field}` : field) }
  } catch (thrown) {
    throw new ConfigError('--config', `${file}: ${errorText(thrown)}`, thrown)
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (thrown) {
    throw new ConfigError('--config', `${file} cannot be read: ${errorCode(thrown) ?? errorText(thrown)}`, thrown)
  }
}
