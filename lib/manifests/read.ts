// SPDX-License-Identifier: Apache-2.0
/** Text of a manifest file → raw objects, each with the way to it; or where the text is broken.
 * Layer: lib/manifests. */
import { CORE_SCHEMA, defineScalarTag, loadAll, mergeTag, YAMLException } from 'js-yaml'
import { errorText } from '../base/errors.ts'
import { isObject } from '../base/object.ts'
import { jsonErrorAt, locateInJson } from './locate-json.ts'
import { YamlPlaces } from './locate-yaml.ts'
import { lineAt } from './path.ts'
import type { Step } from './path.ts'

export interface RawObject {
  readonly value: unknown
  /** which of the file's documents, from 0 */
  readonly document: number
  /** from the document to the object: empty, or into a List */
  readonly path: readonly Step[]
}

export type ReadResult =
  | { readonly kind: 'ok'; readonly objects: readonly RawObject[] }
  | { readonly kind: 'broken'; readonly line: number | undefined; readonly reason: string }

/** Above this no place is looked for in YAML: it would take longer than reading the file did. */
const LARGEST_PLACED_YAML = 8_000_000

/** Strings as copies: what the parser cuts out of the text would keep the whole file in memory. */
const copiedText = defineScalarTag('tag:yaml.org,2002:str', {
  resolve: (source) => (source.length < 13 ? source : Buffer.from(source).toString()),
  identify: (value) => typeof value === 'string',
})

const schema = CORE_SCHEMA.withTags(mergeTag, copiedText)

/** Of a file, or a path to one. */
export function isManifestName(name: string): boolean {
  return /\.(ya?ml|json)$/.test(name)
}

function isJsonName(name: string): boolean {
  return name.endsWith('.json')
}

/** `name` decides between JSON and YAML. Never throws. */
export function readManifest(name: string, text: string): ReadResult {
  const documents = isJsonName(name) ? readJson(text) : readYaml(text)
  if ('reason' in documents) return { kind: 'broken', ...documents }
  const objects = documents.values.flatMap((value, document) => expand(value, document))
  return { kind: 'ok', objects }
}

type Documents = { readonly values: readonly unknown[] } | { readonly line: number | undefined; readonly reason: string }

function readJson(text: string): Documents {
  try {
    const value: unknown = JSON.parse(text)
    return { values: [value] }
  } catch {
    const at = jsonErrorAt(text)
    if (text.trim() === '') return { line: undefined, reason: 'is empty' }
    return {
      line: at === undefined ? undefined : lineAt(text, at),
      reason:
        at === undefined || at >= text.length
          ? 'ends in the middle of JSON'
          : `is not valid JSON at ${JSON.stringify(text.slice(at, at + 12))}`,
    }
  }
}

function readYaml(text: string): Documents {
  try {
    return { values: loadAll(text, { schema }) }
  } catch (thrown) {
    const line = thrown instanceof YAMLException ? thrown.mark?.line : undefined
    return {
      line: line === undefined ? undefined : line + 1,
      reason: `is not valid YAML: ${thrown instanceof YAMLException ? thrown.reason : errorText(thrown)}`,
    }
  }
}

/** A List's items, or the document itself; nothing for an empty document. */
function expand(value: unknown, document: number): readonly RawObject[] {
  if (value === null || value === undefined) return []
  if (!isObject(value)) return [{ value, document, path: [] }]
  const { kind, items, apiVersion } = value
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) return [{ value, document, path: [] }]
  // lists of one kind, as the API server gives them, leave the kind out of their items
  const named = kind === 'List' ? undefined : { kind: kind.slice(0, -'List'.length), apiVersion }
  return items.map((item: unknown, at) => ({
    value: named !== undefined && isObject(item) ? { ...named, ...item } : item,
    document,
    path: ['items', at],
  }))
}

/** Tells lines of places in one file; takes the text apart only when asked, and only once. */
export class Places {
  readonly #name: string
  readonly #text: string
  #yaml: YamlPlaces | undefined

  constructor(name: string, text: string) {
    this.#name = name
    this.#text = text
  }

  /** The line of what `path` leads to in the object; undefined when it cannot be found. */
  line(object: RawObject, path: readonly Step[]): number | undefined {
    const way = [...object.path, ...path]
    if (isJsonName(this.#name)) return lineAt(this.#text, locateInJson(this.#text, way))
    if (this.#text.length > LARGEST_PLACED_YAML) return undefined
    this.#yaml ??= new YamlPlaces(this.#text)
    return lineAt(this.#text, this.#yaml.locate(object.document, way))
  }
}
