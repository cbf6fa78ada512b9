// SPDX-License-Identifier: Apache-2.0
/** `definitions`: the kinds of this version, each served before anything goes by it. Those of the operator come when
 * nothing leads back: an older operator would no longer see what its Installation says. Layer: upgrade. */
import { getOrNone } from '#lib/api/absent.ts'
import { namedOf, type ApiObject } from '#lib/api/resource.ts'
import { servedKinds } from '#lib/api/served-kinds.ts'
import { hasValues } from '#lib/base/deep-equal.ts'
import { mapLimited } from '#lib/base/async/map-limited.ts'
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import { definitions, isOfNewer, madeBy, operatorDefinitions } from '#lib/render/definitions.ts'
import { felixSchema } from '#agent/config/open-api.ts'
import { keepOwners } from '../owners/move.ts'
import type { Step } from '../steps/step.ts'
import { FIELD_MANAGER, StepFailedError, waitFor, type StorageOptions } from './options.ts'

const AT_ONCE = 4

/** Of netplane.io/v3. */
export function definitionsStep(options: StorageOptions): Step {
  return stepOf(options, 'definitions', definitions(felixSchema()))
}

/** Of operator.netplane.io/v1. */
export function operatorDefinitionsStep(options: StorageOptions): Step {
  // the file has all definitions, and nothing else
  const commands = ['kubectl apply --server-side --force-conflicts -f operator-crds.yaml']
  return { ...stepOf(options, 'operator-definitions', operatorDefinitions()), commands }
}

function stepOf(options: StorageOptions, name: string, all: readonly object[]): Step {
  const { client, version } = options
  const wanted = all.map((definition) => madeBy(definition, version))
  return {
    name,
    about: `applies ${wanted.length} definitions, and waits until each is served`,
    commands: [],
    look: async (signal) => ({ isDone: (await missing(options, wanted, signal)) === undefined, problems: [] }),
    run: async (signal, tell) => {
      // once its kind is served, an owner with an old UID is dead, and what it owned goes with it
      const { problems } = await keepOwners(client)
      if (problems.length > 0) throw new StepFailedError(name, problems)
      await mapLimited(wanted, AT_ONCE, async (definition) => {
        signal.throwIfAborted()
        if (!isInForce(await getOrNone(client, namedOf(definition), { signal }), definition, version))
          await client.apply(definition, { fieldManager: FIELD_MANAGER, force: true, signal })
      })
      await waitFor(options, { step: name, signal, missing: () => missing(options, wanted, signal) })
      tell(`${wanted.length} definitions are served`)
    },
  }
}

async function missing(
  { client, version }: StorageOptions,
  wanted: readonly ApiObject[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const found = await mapLimited(wanted, AT_ONCE, (definition) => getOrNone(client, namedOf(definition), { signal }))
  const unmade = wanted.filter((definition, at) => !isInForce(found[at], definition, version))
  if (unmade.length > 0) return `${unmade.map(({ metadata }) => metadata.name).join(', ')}: not established in this version's form`
  const { kinds } = await servedKinds(client, { signal })
  const served = new Set(kinds.map(({ apiVersion, plural }) => `${plural} ${apiVersion}`))
  const unserved = wanted.flatMap(servedNames).filter((name) => !served.has(name))
  return unserved.length === 0 ? undefined : `${unserved.join(', ')}: not served`
}

/** "tiers netplane.io/v3" */
function servedNames({ spec }: ApiObject): readonly string[] {
  const { group, names, versions } = fieldsOf(spec)
  const plural = textOf(fieldsOf(names)['plural'])
  return objectsIn(versions).map((version) => `${plural} ${textOf(group)}/${textOf(version['name'])}`)
}

/** As it is wanted, or as a newer version has made it. */
function isInForce(found: ApiObject | undefined, wanted: ApiObject, version: string): boolean {
  const conditions = objectsIn(fieldsOf(found?.['status'])['conditions'])
  const isEstablished = conditions.some(({ type, status }) => type === 'Established' && status === 'True')
  if (found === undefined || !isEstablished) return false
  return isOfNewer(found, version) || hasValues(found['spec'], wanted['spec'])
}
