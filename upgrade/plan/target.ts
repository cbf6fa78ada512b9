// SPDX-License-Identifier: Apache-2.0
/** The objects of this version in the place of those that were found, with the edits that are carried. Layer: upgrade
 * (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { fieldsOf } from '#lib/base/object.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { imageOf } from '#lib/render/image.ts'
import { MANIFEST_CONTENTS } from '#lib/render/manifests.ts'
import { isK3sOf, providerOf } from '#lib/render/providers.ts'
import { renderInstallation } from '#lib/render/render.ts'
import type { UpgradeFacts } from '../found/facts.ts'
import type { Found } from '../found/found.ts'
import { objectsOf } from '../found/objects.ts'
import type { Raw } from '../stored/outcome.ts'

export interface TargetInput {
  readonly facts: UpgradeFacts
  readonly found: Found
  /** fields of an Installation's spec */
  readonly carried: Raw
  /** "3.31.5" */
  readonly version: string
  /** as its file has it, which knows no platform */
  readonly isUsual?: boolean
}

/** Annotation of the DaemonSet: a JSON object, the fields of an Installation's spec that were carried. A run that is
 * cut off, and the next version, render by them. */
const CARRIED = 'upgrade.netplane.io/carried'

/** Empty where it says none. Throws SyntaxError for what is no JSON. */
export function carriedIn({ metadata }: ApiObject): Raw {
  return fieldsOf(JSON.parse(metadata.annotations?.[CARRIED] ?? '{}'))
}

/** Of a manifest. Throws FieldError where a carried field is none of an Installation. */
export function targetObjects({ facts, found, carried, version, isUsual = false }: TargetInput): readonly ApiObject[] {
  const { cni, settings } = MANIFEST_CONTENTS[found.target]
  const spec = installationSpec.read({ ...carried, cni: { ...fieldsOf(carried['cni']), type: cni } })
  const serverVersion = facts.serverVersion ?? ''
  const computed = computeInstallation(spec, {
    provider: isUsual ? 'Generic' : providerOf(serverVersion, objectsOf(facts, '', 'Node')),
    isK3s: !isUsual && isK3sOf(serverVersion),
    hasKubeProxy: !found.isBpf,
    installed: found.isBpf ? 'BPF' : 'Standard',
  })
  const rendered = renderInstallation({
    ...{ namespace: found.namespace, daemonSet: found.daemonSet.metadata.name, settings },
    ...{ image: imageOf(computed, version), computed, endpoint: undefined },
  })
  return rendered.map((object) => (object.kind === 'DaemonSet' ? withCarried(object, carried) : object))
}

function withCarried(object: ApiObject, carried: Raw): ApiObject {
  if (Object.keys(carried).length === 0) return object
  const annotations = { ...object.metadata.annotations, [CARRIED]: JSON.stringify(carried) }
  return { ...object, metadata: { ...object.metadata, annotations } }
}
