// SPDX-License-Identifier: Apache-2.0
/** `convert`: manifests of other forms as those of netplane.io/v3. Layer: cli. */
import { isObject } from '#lib/base/object.ts'
import { convert } from '#lib/kube/convert/convert.ts'
import { FieldError } from '#lib/kube/parse/fields.ts'
import { linesText, problemText, type CommandResult } from '../command-result.ts'
import { checkObject, guessedRef, type Checked, type CheckOptions } from '../resources/check.ts'
import { readFiles } from '../resources/files.ts'
import { V3_RESOURCES } from '../resources/kinds.ts'
import type { ConvertOrder } from '../resources/order.ts'
import { yamlText } from '../resources/output.ts'

/** Prints nothing where anything cannot be carried. */
export async function convertCommand({ files, namespace, format, ignoreValidation }: ConvertOrder): Promise<CommandResult> {
  const options = { namespace, namesOnly: ignoreValidation }
  const { objects, problems } = await readFiles(files, (value) => convertObject(value, options))
  const warnings = linesText(problems.map(problemText))
  if (problems.some(({ inPart }) => inPart !== true)) return { text: '', warnings: `${warnings}nothing was converted\n`, exitCode: 1 }
  const all = objects.map(({ object }) => object)
  const text =
    format === 'yaml'
      ? all.map(yamlText).join('---\n')
      : `${JSON.stringify(all.length === 1 ? all[0] : { apiVersion: 'v1', kind: 'List', metadata: {}, items: all }, undefined, 2)}\n`
  return { text, warnings, exitCode: 0 }
}

/** Objects of netplane.io/v3 stay as they are, others are refused. */
export function convertObject(value: unknown, options: CheckOptions): Checked {
  try {
    return checkObject(isObject(value) ? convert(value, SCHEMAS) : value, options)
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    const rejected = { ref: guessedRef(value), path: thrown.path, reason: thrown.reason }
    return { object: undefined, resource: undefined, rejected: [rejected], inPart: false }
  }
}

const SCHEMAS = new Map(V3_RESOURCES.map(({ kind, spec }) => [kind, spec]))
