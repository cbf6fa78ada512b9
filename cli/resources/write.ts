// SPDX-License-Identifier: Apache-2.0
/** `apply`, `create`, `replace`, `delete`, `patch`, `label`: each object by itself, the others go on. Layer: cli. */
import type { ApiClient } from '#lib/api/client.ts'
import { isRefused } from '#lib/api/errors.ts'
import { namedOf, type Named } from '#lib/api/resource.ts'
import { nameKey } from '#lib/model/ref.ts'
import { linesText, type CommandResult } from '../command-result.ts'
import { applyObject, AS_US, namedTarget, reasonOf, replaceObject, whileOthersWrite } from './objects.ts'
import type { FileObject } from './files.ts'
import type { DeleteOrder, LabelOrder, PatchOrder, WriteOrder } from './order.ts'

/** One object, and how it is written. `skip`: a reason of the server that is none to fail. */
interface Item {
  readonly named: Named
  readonly write: () => Promise<unknown>
  readonly skip?: string | undefined
}

const PAST = { apply: 'applied', create: 'created', replace: 'replaced', delete: 'deleted', patch: 'patched' } as const
type Verb = keyof typeof PAST

export async function writeFiles(
  client: ApiClient,
  { kind, skipExists }: WriteOrder,
  objects: readonly FileObject[],
): Promise<CommandResult> {
  const write = {
    apply: applyObject,
    create: (to: ApiClient, object: FileObject['object']) => to.create(object, AS_US),
    replace: replaceObject,
  }[kind]
  const skip = kind === 'create' && skipExists ? 'AlreadyExists' : undefined
  return await writeAll(
    kind,
    objects.map(({ object }) => ({ named: namedOf(object), write: () => write(client, object), skip })),
  )
}

export async function deleteAll(client: ApiClient, { skipNotExists }: DeleteOrder, all: readonly Named[]): Promise<CommandResult> {
  const skip = skipNotExists ? 'NotFound' : undefined
  return await writeAll(
    'delete',
    all.map((named) => ({ named, write: () => client.delete(named, {}), skip })),
  )
}

export async function patchObject(client: ApiClient, { target, namespace, type, patch }: PatchOrder): Promise<CommandResult> {
  const named = namedTarget(target, namespace)
  return await writeAll('patch', [{ named, write: () => client.patch(named, patch, { ...AS_US, type }) }])
}

async function writeAll(verb: Verb, items: readonly Item[]): Promise<CommandResult> {
  const errors: string[] = []
  const skipped: string[] = []
  for (const { named, write, skip } of items)
    try {
      await write()
    } catch (thrown) {
      if (skip !== undefined && isRefused(thrown, skip))
        skipped.push(`${shownName(named)} ${skip === 'NotFound' ? 'is not there' : 'is there already'}`)
      else errors.push(`${shownName(named)}: ${reasonOf(thrown)}`)
    }
  const done = items.length - errors.length - skipped.length
  const what = countText(
    done,
    items.map(({ named }) => named),
  )
  const text =
    errors.length === 0
      ? [`Successfully ${PAST[verb]} ${what}`]
      : done > 0
        ? [`Partial success: ${PAST[verb]} ${done} out of ${items.length} resources`]
        : []
  return {
    text: linesText([...skipped.map((one) => `Skipped: ${one}`), ...text]),
    warnings: linesText(errors),
    exitCode: errors.length === 0 ? 0 : 1,
  }
}

/** "3 'Tier' resource(s)": the kind where all have the same. */
export function countText(count: number, all: readonly Named[]): string {
  const kinds = new Set(all.map(({ kind }) => kind))
  return `${count} ${kinds.size === 1 ? `'${[...kinds].join('')}' ` : ''}resource(s)`
}

/** "NetworkPolicy shop/db" */
export function shownName({ kind, namespace = '', name }: Named): string {
  return `${kind} ${nameKey({ namespace, name })}`
}

/** One that has another value stays unless it is to be overwritten; then none is changed. */
export async function labelObject(client: ApiClient, { target, namespace, labels, overwrite }: LabelOrder): Promise<CommandResult> {
  const named = namedTarget(target, namespace)
  let lines: readonly string[] = []
  let refused: readonly string[] = []
  try {
    await whileOthersWrite(async () => {
      const { metadata } = await client.get(named)
      const before = metadata.labels ?? {}
      const changes = [...labels].filter(([key, value]) => (before[key] ?? null) !== value)
      refused = overwrite ? [] : changes.filter(([key, value]) => value !== null && Object.hasOwn(before, key)).map(([key]) => key)
      if (refused.length > 0) return
      lines = [...labels].map(
        ([key, value]) => `${changeText(before[key], value)} label ${key} ${value === null ? 'from' : 'on'} ${shownName(named)}`,
      )
      const { resourceVersion } = metadata
      // the version: what was looked at is what is changed
      if (changes.length > 0)
        await client.patch(named, { metadata: { resourceVersion, labels: Object.fromEntries(changes) } }, { ...AS_US, type: 'merge' })
    })
  } catch (thrown) {
    return { text: '', warnings: `${shownName(named)}: ${reasonOf(thrown)}\n`, exitCode: 1 }
  }
  const warnings = linesText(refused.map((key) => `${shownName(named)}: label ${key} has another value: use --overwrite`))
  return { text: linesText(lines), warnings, exitCode: refused.length === 0 ? 0 : 1 }
}

function changeText(before: string | undefined, value: string | null): string {
  if (value === null) return before === undefined ? 'There was no' : 'Successfully removed'
  return before === undefined || before === value ? 'Successfully set' : 'Successfully updated'
}
