// SPDX-License-Identifier: Apache-2.0
/** In which form objects are shown: what stands behind `-o`. Layer: cli (pure). */
import { ConfigError } from '#lib/base/errors.ts'
import { parsePath, type Step } from './json-path.ts'

/** By its path, or undefined: a column that the kind itself has by this heading. */
export interface AskedColumn {
  readonly heading: string
  readonly path: readonly Step[] | undefined
}

export type Format =
  | { readonly kind: 'table'; readonly wide: boolean }
  | { readonly kind: 'yaml' | 'json' | 'name' }
  | { readonly kind: 'columns'; readonly columns: readonly AskedColumn[] }

const COLUMNS = 'custom-columns'

/** Throws ConfigError. */
export function readFormat(text: string | undefined): Format {
  switch (text) {
    case undefined:
    case 'ps':
      return { kind: 'table', wide: false }
    case 'wide':
      return { kind: 'table', wide: true }
    case 'yaml':
    case 'json':
    case 'name':
      return { kind: text }
    default: {
      const [name, ...columns] = text.split('=')
      if (name === COLUMNS) return { kind: 'columns', columns: readColumns(columns.join('=')) }
      throw new ConfigError('--output', `${JSON.stringify(text)} is none of wide, yaml, json, name, ${COLUMNS}=HEADING[:PATH],…`)
    }
  }
}

function readColumns(text: string): readonly AskedColumn[] {
  // a comma between brackets is of the path
  const parts = text.split(/,(?![^[]*\])/)
  if (parts.includes('')) throw new ConfigError('--output', `${COLUMNS} needs HEADING:PATH,… like NAME:.metadata.name`)
  return parts.map((part) => {
    const at = part.indexOf(':')
    return at < 0 ? { heading: part, path: undefined } : { heading: part.slice(0, at), path: parsePath(part.slice(at + 1)) }
  })
}
