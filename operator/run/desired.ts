// SPDX-License-Identifier: Apache-2.0
/** What an Installation asks for, and where. Layer: operator (pure). */
import { fieldsOf, isObject } from '#lib/base/object.ts'
import { FieldError } from '#lib/kube/parse/fields.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { computeInstallation, type Computed, type ClusterFacts, type InstallationSpec } from '#lib/render/computed.ts'

export interface Asked {
  readonly computed: Computed
  readonly pools: NonNullable<InstallationSpec['netplaneNetwork']>['ipPools']
}

/** Throws FieldError, with the value that stands there, where the spec cannot be read or asks for what is not there. */
export function readInstallation(installation: ApiObject, facts: ClusterFacts): Asked {
  try {
    const spec = readSpec(installation['spec'], 'spec')
    const computed = computeInstallation(spec, facts)
    refuse(spec, computed)
    return { computed, pools: spec.netplaneNetwork?.ipPools ?? [] }
  } catch (thrown) {
    throw thrown instanceof FieldError ? withValue(thrown, installation) : thrown
  }
}

/** A field that is missing, or has parts, is known by its path alone. */
function withValue({ path, reason }: FieldError, installation: ApiObject): FieldError {
  const keys = path.split(/[.[\]]+/).filter((key) => key !== '')
  const value = keys.reduce<unknown>(
    (at, key) => (Array.isArray(at) ? (at as readonly unknown[])[Number(key)] : fieldsOf(at)[key]),
    installation,
  )
  if (!['string', 'number', 'boolean'].includes(typeof value)) return new FieldError(path, reason)
  return new FieldError(path, `${reason}; it is ${JSON.stringify(value)}`)
}

/** Of an Installation that goes: a spec that cannot be read is no reason to keep what is installed. */
export function readLeaving({ spec, status }: ApiObject, facts: ClusterFacts): Computed {
  const before = isObject(status) ? status['computed'] : undefined
  for (const [raw, field] of [
    [spec, 'spec'],
    [before, 'status.computed'],
  ] as const)
    try {
      return computeInstallation(readSpec(raw, field), facts)
    } catch (thrown) {
      if (!(thrown instanceof FieldError)) throw thrown
    }
  return computeInstallation(installationSpec.read({}), facts)
}

/** What is not ours to do. Throws FieldError for the first of it. */
function refuse({ netplaneNetwork }: InstallationSpec, { cni }: Computed): void {
  const isOwn = cni === 'Netplane' || cni === 'Local'
  const others = `is the other plugin's where spec.cni.type is ${cni}`
  const asked: readonly (readonly [boolean, string, string])[] = [
    [netplaneNetwork?.mtu !== undefined && !isOwn, 'netplaneNetwork.mtu', others],
    [netplaneNetwork?.hostPorts === 'Disabled' && !isOwn, 'netplaneNetwork.hostPorts', others],
  ]
  const found = asked.find(([isAsked]) => isAsked)
  if (found !== undefined) throw new FieldError(`spec.${found[1]}`, found[2])
}

/** Throws FieldError with a path below `field`. */
function readSpec(raw: unknown, field: string): InstallationSpec {
  try {
    return installationSpec.read(raw ?? {})
  } catch (thrown) {
    throw thrown instanceof FieldError ? thrown.under(field) : thrown
  }
}
