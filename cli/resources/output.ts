// SPDX-License-Identifier: Apache-2.0
/** Objects as they are shown: a table for each kind, YAML, JSON, names. Layer: cli (pure). */
import { dump } from 'js-yaml'
import type { ApiObject } from '#lib/api/resource.ts'
import { ConfigError } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import { table } from '#lib/base/table.ts'
import type { Resource } from '#lib/kube/resources.ts'
import { orDash } from '../text.ts'
import type { AskedColumn, Format } from './format.ts'
import { parsePath, valuesAt, type Step } from './json-path.ts'

/** Of one kind. */
export interface Shown {
  readonly resource: Resource
  readonly objects: readonly ApiObject[]
}

export interface ShowOptions {
  readonly format: Format
  /** with the namespaces of objects */
  readonly allNamespaces: boolean
  /** one object was asked for by its name: no list */
  readonly isOne: boolean
  /** ms since 1970 */
  readonly now: number
}

interface Column {
  readonly heading: string
  readonly path: readonly Step[]
  readonly isDate: boolean
}

/** Throws ConfigError for a column that a kind does not have. */
export function showText(all: readonly Shown[], options: ShowOptions): string {
  const { format, isOne } = options
  switch (format.kind) {
    case 'name':
      return all.flatMap(({ resource, objects }) => objects.map(({ metadata }) => `${longName(resource)}/${metadata.name}\n`)).join('')
    case 'json':
    case 'yaml': {
      const objects = all.flatMap((one) => one.objects)
      const [first] = objects
      const shown = isOne && first !== undefined ? first : { apiVersion: 'v1', kind: 'List', metadata: {}, items: objects }
      return format.kind === 'json' ? `${JSON.stringify(shown, undefined, 2)}\n` : yamlText(shown)
    }
    case 'table':
    case 'columns':
      return all
        .filter(({ objects }) => objects.length > 0)
        .map((one) => tableText(one, options))
        .join('\n')
  }
}

/** "hostendpoint.netplane.io" */
function longName({ kind, group }: Resource): string {
  return `${kind.toLowerCase()}.${group}`
}

/** Its schema quotes what any version of YAML takes for something else than text. */
export function yamlText(value: unknown): string {
  return dump(value, { noRefs: true, lineWidth: -1 })
}

function tableText({ resource, objects }: Shown, { format, allNamespaces, now }: ShowOptions): string {
  const columns = columnsFor(resource, format, allNamespaces)
  const rows = objects.map((object) => columns.map((column) => cellText(object, column, now)))
  return `${table([columns.map(({ heading }) => heading), ...rows])}\n`
}

function columnsFor(resource: Resource, format: Format, allNamespaces: boolean): readonly Column[] {
  if (format.kind === 'columns') return format.columns.map((asked) => askedColumn(asked, resource))
  const isWide = format.kind === 'table' && format.wide
  return ownColumns(resource)
    .filter(({ wide }) => isWide || wide !== true)
    .filter(({ heading }) => heading !== NAMESPACE || (allNamespaces && resource.namespaced))
}

const NAMESPACE = 'NAMESPACE'

/** As the API server prints them, but for the namespace. */
function ownColumns({ columns }: Resource): readonly (Column & { readonly wide?: true | undefined })[] {
  const metadata = (heading: string, name: string, isDate = false) => ({ heading, path: parsePath(`.metadata.${name}`), isDate })
  return [
    metadata(NAMESPACE, 'namespace'),
    metadata('NAME', 'name'),
    ...columns.map(({ name, type, path, wide }) => ({
      heading: name.toUpperCase(),
      path: parsePath(path),
      isDate: type === 'date',
      wide,
    })),
    metadata('AGE', 'creationTimestamp', true),
  ]
}

function askedColumn({ heading, path }: AskedColumn, resource: Resource): Column {
  if (path !== undefined) return { heading, path, isDate: false }
  const own = ownColumns(resource)
  const found = own.find((column) => column.heading === heading.toUpperCase())
  if (found !== undefined) return found
  const reason = `${JSON.stringify(heading)} is none of ${own.map((column) => column.heading).join(', ')}, and has no path behind it`
  throw new ConfigError('--output', `${resource.kind}: column ${reason}`)
}

function cellText(object: ApiObject, { path, isDate }: Column, now: number): string {
  const values = valuesAt(object, path)
  if (isDate) return values.map((value) => ageText(now - Date.parse(String(value)))).join(',')
  return orDash(values.map(valueText).join(','))
}

function valueText(value: unknown): string {
  if (Array.isArray(value)) return value.map(valueText).join(',')
  return isObject(value) ? JSON.stringify(value) : String(value)
}

/** "5s", "12m", "3h", "40d" */
function ageText(ms: number): string {
  if (Number.isNaN(ms)) return '-'
  const units = [
    [86_400_000, 'd'],
    [3_600_000, 'h'],
    [60_000, 'm'],
  ] as const
  const [length, unit] = units.find(([one]) => ms >= 2 * one) ?? ([1000, 's'] as const)
  return `${Math.max(0, Math.floor(ms / length))}${unit}`
}
