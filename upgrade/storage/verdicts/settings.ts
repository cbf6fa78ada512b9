// SPDX-License-Identifier: Apache-2.0
/** Settings that decide beside policies: what of them is not as it was on a node. Layer: upgrade (pure). */
import { deepEqual } from '#lib/base/deep-equal.ts'
import { compareText } from '#lib/base/order.ts'
import type { FelixConfiguration, Json } from '#lib/model/felix-configuration.ts'
import type { Snapshot } from '#lib/model/snapshot.ts'
import { layerFromEnvironment } from '#agent/config/layers.ts'
import { allFields, type Field } from '#agent/config/schema.ts'
import { OLD_DEFAULTS } from '../../stored/rules/felix.ts'

const NAMES: ReadonlySet<string> = new Set(['defaultEndpointToHostAction', 'failsafeInboundHostPorts', 'failsafeOutboundHostPorts'])
const FIELDS: readonly Field<unknown>[] = allFields.filter(({ name }) => NAMES.has(name))

type Configurations = Pick<Snapshot, 'felixConfigurations'>

/** The environment of old agents went before every object, and those of this version have none. */
export function settingDifferences(
  before: Configurations & { readonly environment: Readonly<Record<string, string>> },
  after: Configurations,
): readonly string[] {
  const { spec } = layerFromEnvironment(before.environment)
  // a node without an object of its own goes by `default` alone
  const names = new Set(['default', ...before.felixConfigurations.keys(), ...after.felixConfigurations.keys()])
  return [...names].sort(compareText).flatMap((name) =>
    FIELDS.flatMap((field) => {
      const was = spec[field.name] ?? saidIn(before, name, field) ?? OLD_DEFAULTS[field.name]
      const is = saidIn(after, name, field)
      if (deepEqual(valueOf(field, was), valueOf(field, is))) return []
      const nodes = name === 'default' ? 'of nodes without an own object' : `of ${name}`
      return [`FelixConfiguration: ${field.name} ${nodes} was ${textOf(was, field)} and is ${textOf(is, field)}`]
    }),
  )
}

function saidIn({ felixConfigurations }: Configurations, name: string, field: Field<unknown>): Json | undefined {
  const said = (object: FelixConfiguration | undefined): Json | undefined => object?.spec[field.name]
  return said(felixConfigurations.get(name)) ?? said(felixConfigurations.get('default'))
}

function valueOf({ parser, fallback }: Field<unknown>, said: Json | undefined): unknown {
  const parsed = said === undefined ? undefined : parser.parse(said)
  return parsed?.kind === 'ok' ? parsed.value : fallback
}

function textOf(said: Json | undefined, { fallbackText }: Field<unknown>): string {
  return said === undefined ? fallbackText : JSON.stringify(said)
}
