// SPDX-License-Identifier: Apache-2.0
/** What the controllers take from a ControllersConfiguration, and what they refuse of it. Layer: test. */
import { expect, test } from 'vitest'
import { controllersConfigurationSpec } from '#lib/kube/schema/controllers-configuration.ts'
import { readSettings, type Settings } from '#controllers/config/settings.ts'

function accepted(spec: unknown): Settings {
  const read = readSettings(spec)
  if (read.kind !== 'accepted') throw new Error(JSON.stringify(read))
  return read.settings
}

test.each([undefined, {}, { controllers: {} }, { controllers: { node: { hostEndpoint: {} } } }])(
  '%j is what counts without one',
  (spec) => {
    expect(accepted(spec)).toMatchObject({
      hostEndpoints: { autoCreate: false, createDefault: true, templates: [], syncLabels: true },
      leakGraceMs: 900_000,
      reconcileMs: 300_000,
      logLevel: 'info',
    })
  },
)

test('every field can be set', () => {
  const template = {
    generateName: 'db',
    interfaceCIDRs: ['10.0.0.0/8'],
    interfacePattern: '^eth',
    labels: { a: 'b' },
    nodeSelector: 'has(x)',
  }
  const hostEndpoint = { autoCreate: 'Enabled', createDefaultHostEndpoint: 'Disabled', templates: [template] }
  const node = { hostEndpoint, syncLabels: 'Disabled', leakGracePeriod: '1h', reconcilerPeriod: '10ms' }
  const { running, ...settings } = accepted({ logSeverityScreen: 'Warning', controllers: { node } })
  expect(settings).toMatchObject({
    hostEndpoints: {
      autoCreate: true,
      createDefault: false,
      templates: [{ generateName: 'db', interfacePattern: /^eth/ }],
      syncLabels: false,
    },
    ...{ leakGraceMs: 3_600_000, reconcileMs: 1000, logLevel: 'warn' },
  })
  expect(running).toEqual({ logSeverityScreen: 'Warning', controllers: { node } })
})

test('a grace of nothing means never', () => {
  expect(accepted({ controllers: { node: { leakGracePeriod: '0s' } } }).leakGraceMs).toBeUndefined()
})

test('what runs is told as a spec that can be read again', () => {
  const { running } = accepted({ controllers: { node: { hostEndpoint: { autoCreate: 'Enabled' } } } })
  expect(() => controllersConfigurationSpec.read(running)).not.toThrow()
  expect(accepted(running).running).toEqual(running)
})

test('what is not supported is refused by all its fields at once', () => {
  const controllers = { policy: { reconcilerPeriod: '5m' }, loadBalancer: { assignIPs: 'AllServices' } }
  const read = readSettings({ healthChecks: 'Disabled', prometheusMetricsPort: 9094, controllers })
  expect(read).toMatchObject({ kind: 'refused' })
  expect(read.kind === 'refused' && read.rejected.map(({ path }) => path)).toEqual([
    ...['spec.healthChecks', 'spec.prometheusMetricsPort', 'spec.controllers.policy', 'spec.controllers.loadBalancer'],
  ])
  accepted({ healthChecks: 'Enabled', prometheusMetricsPort: 0 })
})

const REFUSED: readonly (readonly [spec: object, path: string, reason: string])[] = [
  [
    { controllers: { node: { hostEndpoint: { autoCreate: 'On' } } } },
    'spec.controllers.node.hostEndpoint.autoCreate',
    'must be Enabled or Disabled',
  ],
  [
    { controllers: { node: { leakGracePeriod: '15' } } },
    'spec.controllers.node.leakGracePeriod',
    'must be a duration like 1h30m, 90s or 250ms',
  ],
  [
    { controllers: { node: { hostEndpoint: { templates: [{ generateName: 'a', interfacePattern: '(' }] } } } },
    'spec.controllers.node.hostEndpoint.templates[0].interfacePattern',
    'is no regular expression',
  ],
  [{ controllers: { nodes: {} } }, 'spec.controllers.nodes', 'is not a field that is understood here'],
]

test.each(REFUSED)('%j: %s %s', (spec, path, reason) => {
  expect(readSettings(spec)).toEqual({ kind: 'refused', rejected: [{ path, reason }] })
})
