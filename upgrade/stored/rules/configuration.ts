// SPDX-License-Identifier: Apache-2.0
/** ControllersConfiguration and ClusterInformation: what of them has no place here. Layer: upgrade (pure). */
import type { Schema } from '#lib/base/schema.ts'
import { isObject } from '#lib/base/object.ts'
import { valueAt, type Path, type Rule } from '../edit.ts'

const NO_CONTROLLER = 'there is no such controller'

interface LeftOut {
  readonly path: Path
  readonly why: string
  /** the one value that is not left out */
  readonly unless?: unknown
}

export const CONTROLLERS_LEFT_OUT: readonly LeftOut[] = [
  ...['policy', 'workloadEndpoint', 'serviceAccount', 'namespace', 'loadBalancer'].map((name) => ({
    path: ['spec', 'controllers', name],
    why: NO_CONTROLLER,
  })),
  { path: ['spec', 'prometheusMetricsPort'], why: 'the port of /metrics is an option of the program', unless: 0 },
  { path: ['spec', 'healthChecks'], why: 'health is served in any case', unless: 'Enabled' },
  { path: ['spec', 'etcdV3CompactionPeriod'], why: 'etcd compacts itself' },
  { path: ['spec', 'debugProfilePort'], why: 'there is no Go in the controllers' },
]

export const controllersLeftOut: Rule = (object) =>
  CONTROLLERS_LEFT_OUT.filter(({ path, unless }) => valueAt(object, path) !== unless).map(({ path, why }) => ({
    path,
    after: undefined,
    why,
  }))

/** Fields that the schema has not, where none of them narrows the rest. */
export function unknownLeftOut({ properties = {} }: Schema): Rule {
  return (object) => {
    const { spec } = object
    const others = isObject(spec) ? Object.keys(spec).filter((key) => !Object.hasOwn(properties, key)) : []
    return others.map((key) => ({ path: ['spec', key], after: undefined, why: 'there is no such field' }))
  }
}
