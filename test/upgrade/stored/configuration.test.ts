// SPDX-License-Identifier: Apache-2.0
/** Stored configuration: of agents, of controllers, and of the cluster. Layer: test. */
import { describe, expect, test } from 'vitest'
import { resolveConfig } from '#agent/config/resolve.ts'
import { layerFrom } from '#agent/config/layers.ts'
import { allFields } from '#agent/config/schema.ts'
import { unimplemented } from '#agent/config/unimplemented.ts'
import { readSettings } from '#controllers/config/settings.ts'
import { outcomeLines } from '#upgrade/stored/outcome.ts'
import { readStored } from '#upgrade/stored/read.ts'
import { OLD_DEFAULTS, RENAMED, STOPS } from '#upgrade/stored/rules/felix.ts'
import type { Manifest } from '../../support/build.ts'
import { raw } from './stored.ts'

function read(
  kind: string,
  spec: Manifest,
  { name = 'default', environment = {} }: { name?: string; environment?: Record<string, string> } = {},
) {
  const { outcomes } = readStored({ objects: [raw(kind, name, { spec })], environment })
  const [outcome] = outcomes.filter(({ of }) => of?.kind === kind)
  return {
    lines: outcome === undefined ? [] : outcomeLines(outcome),
    spec: outcome !== undefined && 'object' in outcome ? outcome.object.spec : undefined,
  }
}

const felix = (spec: Manifest) => read('FelixConfiguration', spec, { name: 'node.a' })

describe('FelixConfiguration', () => {
  test.each<[Manifest, Manifest]>([
    [
      { logSeverityScreen: 'WARNING', defaultEndpointToHostAction: 'ACCEPT' },
      { logSeverityScreen: 'Warning', defaultEndpointToHostAction: 'Accept' },
    ],
    [
      { routeRefreshInterval: '1M30S', interfaceRefreshInterval: '90' },
      { routeRefreshInterval: '1m30s', interfaceRefreshInterval: '90s' },
    ],
    [{ bpfConntrackTimeouts: { udpTimeout: '60S' } }, { bpfConntrackTimeouts: { udpTimeout: '60s' } }],
    [{ bpfConnectTimeLoadBalancingEnabled: true }, { bpfConnectTimeLoadBalancing: 'TCP' }],
    [{ bpfConnectTimeLoadBalancingEnabled: false }, { bpfConnectTimeLoadBalancing: 'Disabled' }],
    [{ bpfConnectTimeLoadBalancingEnabled: false, bpfConnectTimeLoadBalancing: 'enabled' }, { bpfConnectTimeLoadBalancing: 'Enabled' }],
    [
      { natPortRange: '32768:65535', bpfKubeProxyIptablesCleanupEnabled: false },
      { bpfPSNATPorts: '32768:65535', bpfProxyIptablesCleanupEnabled: false },
    ],
    [{ iptablesBackend: 'Auto', bpfEnabled: true, reportingInterval: '0s' }, { bpfEnabled: true }],
    [
      { wireguardEnabled: false, floatingIPs: 'disabled' },
      { wireguardEnabled: false, floatingIPs: 'Disabled' },
    ],
    [{ noSuchField: 5, '': 1, 'a.b': 2, bpfConntrackTimeouts: { 'x.y': 3 } }, { bpfConntrackTimeouts: {} }],
    [{ failsafeInboundHostPorts: [{ protocol: 'tcp', port: 22 }] }, { failsafeInboundHostPorts: [{ protocol: 'tcp', port: 22 }] }],
  ])('%j is %j', (before, after) => {
    expect(felix(before).spec).toEqual(after)
  })

  test('each field that is left out has its reason', () => {
    expect(felix({ iptablesBackend: 'Auto', noSuchField: 5 }).lines).toEqual([
      'changed FelixConfiguration node.a as node.a',
      '  spec.iptablesBackend: "Auto" → –: there is no other data plane than eBPF',
      '  spec.noSuchField: 5 → –: there is no such field',
    ])
  })

  test.each<[Manifest, string]>([
    [{ wireguardEnabled: true }, 'spec.wireguardEnabled: true: WireGuard is not implemented'],
    [{ ipipEnabled: true }, 'spec.ipipEnabled: true: IP in IP is not supported'],
    [{ policySyncPathPrefix: '/var/run/nodeagent' }, 'spec.policySyncPathPrefix: "/var/run/nodeagent": '],
    [{ bpfMapSizeRoute: 7 }, 'spec.bpfMapSizeRoute: 7: must be a whole number'],
    [{ bpfConntrackTimeouts: 'long' }, 'spec.bpfConntrackTimeouts: "long": must be an object'],
    [{ deep: [[[[[[[[[[]]]]]]]]]] }, 'is nested too deeply'],
  ])('%j is refused', (spec, fault) => {
    const [head, ...faults] = felix(spec).lines
    expect(head).toBe('refused FelixConfiguration node.a')
    expect(faults.join('\n')).toContain(fault)
  })

  test('what older agents did where nothing was written is written out, for all nodes', () => {
    expect(read('FelixConfiguration', {}).spec).toEqual(OLD_DEFAULTS)
    expect(felix({}).spec).toEqual({})
    expect(read('FelixConfiguration', { bpfEnabled: true, vxlanVNI: 5 }).spec).toEqual({ ...OLD_DEFAULTS, bpfEnabled: true, vxlanVNI: 5 })
  })

  test('the environment of the agents goes before the object of all nodes', () => {
    const environment = { FELIX_DEFAULTENDPOINTTOHOSTACTION: 'ACCEPT', FELIX_HEALTHENABLED: 'true', FELIX_IPV6SUPPORT: 'false', HOME: '/' }
    expect(read('FelixConfiguration', { defaultEndpointToHostAction: 'Drop' }, { environment }).spec).toEqual({
      ...OLD_DEFAULTS,
      defaultEndpointToHostAction: 'Accept',
    })
    expect(read('FelixConfiguration', {}, { name: 'node.a', environment }).spec).toEqual({})
  })

  test('the tables name fields that are there, and defaults that are others here', () => {
    const known = new Map(allFields.map((field) => [field.name, field]))
    expect(RENAMED.filter(({ old, now }) => !unimplemented.has(old) || !known.has(now))).toEqual([])
    expect(STOPS.filter((name) => !unimplemented.has(name))).toEqual([])
    const layer = layerFrom({ kind: 'FelixConfiguration', namespace: '', name: 'default', spec: OLD_DEFAULTS })
    expect(resolveConfig([layer], undefined).rejected).toEqual([])
    expect(
      Object.entries(OLD_DEFAULTS).filter(([name, value]) => known.get(name)?.fallbackText === JSON.stringify(value).replaceAll('"', '')),
    ).toEqual([])
  })
})

test('the ControllersConfiguration of an older installation counts here, without the controllers that there are not', () => {
  const interval = { reconcilerPeriod: '5m0s' }
  const { spec, lines } = read('ControllersConfiguration', {
    ...{ logSeverityScreen: 'info', healthChecks: 'Enabled', prometheusMetricsPort: 9094, etcdV3CompactionPeriod: '10m0s' },
    controllers: {
      node: { ...interval, syncLabels: 'ENABLED', leakGracePeriod: '15m', hostEndpoint: { autoCreate: 'enabled' } },
      ...{ policy: interval, workloadEndpoint: interval, serviceAccount: interval, namespace: interval },
    },
  })
  expect(spec).toEqual({
    ...{ logSeverityScreen: 'Info', healthChecks: 'Enabled' },
    controllers: { node: { ...interval, syncLabels: 'Enabled', leakGracePeriod: '15m', hostEndpoint: { autoCreate: 'Enabled' } } },
  })
  expect(readSettings(spec)).toMatchObject({ kind: 'accepted' })
  expect(lines).toContain('  spec.controllers.policy: {"reconcilerPeriod":"5m0s"} → –: there is no such controller')
  expect(lines).toContain('  spec.prometheusMetricsPort: 9094 → –: the port of /metrics is an option of the program')
})

test('a ControllersConfiguration that cannot be read is refused with its field', () => {
  expect(read('ControllersConfiguration', { controllers: { node: { leakGracePeriod: 'soon' } } }).lines).toEqual([
    'refused ControllersConfiguration default',
    '  spec.controllers.node.leakGracePeriod: "soon": must be a duration like 1h30m, 90s or 250ms',
  ])
})

test('of the ClusterInformation there is what is known here, and a lock stays', () => {
  const known = { clusterGUID: 'f00', clusterType: 'k8s,kdd', netplaneVersion: 'v3.27.0', datastoreReady: false }
  const { spec, lines } = read('ClusterInformation', { ...known, variant: 'Netplane' })
  expect(spec).toEqual(known)
  expect(lines).toEqual(['changed ClusterInformation default as default', '  spec.variant: "Netplane" → –: there is no such field'])
})
