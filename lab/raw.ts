// SPDX-License-Identifier: Apache-2.0
/** Walks objects of unknown shape: manifests, JSON of `ip`, results of our tools. Layer: lab (pure). */

import { isObject } from '#lib/base/object.ts'

/** The value at "spec.nodeName"; undefined where the way ends. */
export function at(value: unknown, path: string): unknown {
  let here: unknown = value
  for (const name of path.split('.')) here = isObject(here) ? here[name] : undefined
  return here
}

export function textAt(value: unknown, path: string): string | undefined {
  const found = at(value, path)
  return typeof found === 'string' && found !== '' ? found : undefined
}

export function numberAt(value: unknown, path: string): number | undefined {
  const found = at(value, path)
  return typeof found === 'number' ? found : undefined
}

/** Empty when there is no list. */
export function listAt(value: unknown, path: string): readonly unknown[] {
  const found = at(value, path)
  return Array.isArray(found) ? found : []
}
