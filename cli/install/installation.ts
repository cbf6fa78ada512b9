// SPDX-License-Identifier: Apache-2.0
/** An Installation in a file of manifests. Layer: cli. */
import { readFileSync } from 'node:fs'
import { loadAll } from 'js-yaml'
import { ConfigError, errorText } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import { FieldError } from '#lib/kube/parse/fields.ts'
import { OPERATOR_GROUP } from '#lib/kube/operator-resources.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import type { InstallationSpec } from '#lib/render/computed.ts'

/** Its spec as it is written there. Throws ConfigError when there is none, or more than one. */
export function rawSpecIn(file: string): unknown {
  const [installation, ...more] = documentsIn(file).filter(isInstallation)
  if (installation === undefined) throw new ConfigError(file, `there is no Installation of ${OPERATOR_GROUP} in it`)
  if (more.length > 0) throw new ConfigError(file, `there are ${more.length + 1} Installations in it: a cluster has one`)
  return installation['spec'] ?? {}
}

/** Throws ConfigError that names the place and the field. */
export function readSpec(where: string, spec: unknown): InstallationSpec {
  try {
    return installationSpec.read(spec)
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    throw new ConfigError(where, thrown.under('spec').message, thrown)
  }
}

function documentsIn(file: string): readonly unknown[] {
  try {
    return loadAll(readFileSync(file, 'utf8'))
  } catch (thrown) {
    throw new ConfigError(file, errorText(thrown), thrown)
  }
}

function isInstallation(value: unknown): value is Readonly<Record<string, unknown>> {
  return isObject(value) && value['kind'] === 'Installation' && String(value['apiVersion']).startsWith(`${OPERATOR_GROUP}/`)
}
