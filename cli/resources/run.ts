// SPDX-License-Identifier: Apache-2.0
/** The verbs: files are read and checked, then the cluster is asked whether it may be written to, then it is.
 * Layer: cli. */
import type { ApiClient } from '#lib/api/client.ts'
import { namedOf } from '#lib/api/resource.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { CLUSTER_INFORMATION } from '#lib/kube/objects/cluster-information.ts'
import type { Problem } from '#lib/store/source.ts'
import { connect } from '../cluster/connect.ts'
import { clusterInformation } from '#lib/control/cluster-version.ts'
import { guardWrites } from '../cluster/guard.ts'
import { mayRead } from '../cluster/may-read.ts'
import { readSettings } from '../cluster/settings.ts'
import { linesText, problemText, type CommandResult } from '../command-result.ts'
import { checkObject } from './check.ts'
import { readFiles, type FileObject } from './files.ts'
import { getChosen, getKind, type Chosen } from './get.ts'
import { namedTarget } from './objects.ts'
import type { Choice, FileChoice, OnlineOrder, VerbOrder } from './order.ts'
import { countText, deleteAll, labelObject, patchObject, writeFiles } from './write.ts'

/** Rejects where nothing could be tried. */
export async function verbCommand(order: VerbOrder): Promise<CommandResult> {
  const files = filesOf(order)
  const namesOnly = order.kind === 'get' || order.kind === 'delete'
  const { objects, problems } =
    files === undefined ? NO_FILES : await readFiles(files, (value) => checkObject(value, { namespace: order.namespace, namesOnly }))
  const warnings = linesText(problems.map(problemText))
  if (problems.some(({ inPart }) => inPart !== true)) return { text: '', warnings: `${warnings}${untouched(order)}`, exitCode: 1 }
  if (files !== undefined && objects.length === 0) return { text: 'No resources specified\n', warnings, exitCode: 0 }
  if (order.kind === 'validate') {
    const named = objects.map(({ object }) => namedOf(object))
    return { text: `Successfully validated ${countText(objects.length, named)}\n`, warnings, exitCode: 0 }
  }
  await using client = connect(readSettings({ flags: order.connection, env: process.env }))
  const chosen = chosenBy(order, objects)
  const warning = order.kind === 'get' ? await mayRead(client, order.allowMismatch) : await mayWrite(client, order, chosen)
  const done = await run(client, order, { objects, chosen })
  return { ...done, warnings: `${warnings}${linesText([warning])}${done.warnings}` }
}

const NO_FILES: { readonly objects: readonly FileObject[]; readonly problems: readonly Problem[] } = { objects: [], problems: [] }

function untouched({ kind }: VerbOrder): string {
  return kind === 'get' || kind === 'validate' ? '' : 'nothing was written\n'
}

function filesOf(order: VerbOrder): FileChoice | undefined {
  if ('files' in order) return order.files
  return 'choice' in order && order.choice.by === 'file' ? order.choice.files : undefined
}

/** All that the command is about, where it is not all of a kind. */
function chosenBy(order: OnlineOrder, objects: readonly FileObject[]): readonly Chosen[] {
  const choice: Choice | undefined = 'choice' in order ? order.choice : undefined
  const targets = 'target' in order ? [order.target] : choice?.by === 'name' ? choice.targets : []
  return [
    ...objects.map(({ object, resource }) => ({ resource, named: namedOf(object) })),
    ...targets.map((target) => ({ resource: target.resource, named: namedTarget(target, order.namespace) })),
  ]
}

/** A warning, or undefined. Rejects where nothing is to be written. */
async function mayWrite(
  client: ApiClient,
  { allowMismatch }: Exclude<OnlineOrder, { readonly kind: 'get' }>,
  chosen: readonly Chosen[],
): Promise<string | undefined> {
  const isAboutLock = chosen.every(({ named }) => named.kind === CLUSTER_INFORMATION.kind)
  return guardWrites({ cluster: await clusterInformation(client), version: packageVersion(), allowMismatch, isAboutLock })
}

async function run(
  client: ApiClient,
  order: OnlineOrder,
  { objects, chosen }: { readonly objects: readonly FileObject[]; readonly chosen: readonly Chosen[] },
): Promise<CommandResult> {
  switch (order.kind) {
    case 'get':
      return order.choice.by === 'kind' ? await getKind(client, order, order.choice) : await getChosen(client, order, chosen)
    case 'apply':
    case 'create':
    case 'replace':
      return await writeFiles(client, order, objects)
    case 'delete':
      return await deleteAll(
        client,
        order,
        chosen.map(({ named }) => named),
      )
    case 'patch':
      return await patchObject(client, order)
    case 'label':
      return await labelObject(client, order)
  }
}
