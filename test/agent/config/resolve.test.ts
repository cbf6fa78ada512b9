// SPDX-License-Identifier: Apache-2.0
/** The configuration in force: precedence, refusals, last good values. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseCidr } from '#lib/base/ip.ts'
import { rejectedText } from '#lib/base/result.ts'
import type { FelixConfiguration } from '#lib/model/felix-configuration.ts'
import { POD_TO_HOST_DROP, SOURCE_STRICT, STRAY_PASS } from '#lib/base/bpf-constants.ts'
import { defaultConfig } from '#agent/config/config.ts'
import { resolveConfig } from '#agent/config/resolve.ts'
import { configurationsOf, layerFrom, layerFromEnvironment, type ConfigLayer } from '#agent/config/layers.ts'
import type { Resolved } from '#agent/config/resolve.ts'
import { allFields } from '#agent/config/schema.ts'
import { unimplemented } from '#agent/config/unimplemented.ts'
import { felixConfiguration, model } from '../../support/build.ts'
import type { Manifest } from '../../support/build.ts'

function felix(name: string, spec: Manifest): FelixConfiguration {
  const object = model(felixConfiguration(name, spec))
  if (object.kind !== 'FelixConfiguration') throw new Error(object.kind)
  return object
}

function resolve(spec: Manifest, previous?: Resolved): Resolved {
  return resolveConfig([layerFrom(felix('default', spec))], previous)
}

const reasons = (resolved: Resolved): string[] => resolved.rejected.map(rejectedText)

test('where no field is set the defaults hold', () => {
  expect(resolveConfig([], undefined)).toEqual({ config: defaultConfig, rejected: [], waiting: [], inForce: new Map() })
  expect(defaultConfig).toMatchObject({
    compile: { interfacePrefix: 'npl', knobs: { tunnelVni: 0x4e50, tunnelPort: 4789, connectTcp: true, connectUdp: false } },
    health: { enabled: true, host: 'localhost', port: 9099 },
    prometheus: { enabled: false, port: 9091 },
    logLevel: 'info',
  })
})

test('every field is obeyed', () => {
  const spec = {
    bpfEnabled: false,
    bpfConnectTimeLoadBalancing: 'Disabled',
    bpfExternalServiceMode: 'DSR',
    bpfPSNATPorts: '100:200',
    bpfBackendSelection: 'Maglev',
    bpfExcludeCIDRsFromNAT: ['10.9.0.0/16'],
    nodePortAddresses: ['10.0.0.0/8'],
    bpfDSROptoutCIDRs: ['fd00::/8'],
    natOutgoingExclusions: 'IPPoolsAndHostIPs',
    bpfEnforceRPF: 'Strict',
    serviceLoopPrevention: 'Disabled',
    defaultEndpointToHostAction: 'Drop',
    failsafeInboundHostPorts: [],
    failsafeOutboundHostPorts: [{ protocol: 'udp', port: 53, net: '10.0.0.0/8' }],
    bpfMapSizeNATAffinity: 5000,
    bpfServiceExternalIPs: 'Disabled',
    bpfMapSizeConntrackScaling: 'Disabled',
    bpfProxyIptablesCleanupEnabled: false,
    bpfKubeProxyHealthzPort: 0,
    bpfDataIfacePattern: 'ens.*',
    bpfConntrackTimeouts: {
      tcpSynSent: '1s',
      tcpEstablished: '2s',
      tcpFinsSeen: '3s',
      tcpResetSeen: '4s',
      udpTimeout: '5s',
      udpStreamTimeout: '6s',
      icmpTimeout: '7s',
    },
    bpfMapSizeConntrack: 2000,
    bpfMapSizeNATFrontend: 3000,
    bpfMapSizeNATBackend: 4000,
    bpfMapSizeRoute: 6000,
    cgroupV2Path: '/sys/fs/cgroup',
    interfaceExclude: 'eth9,/^docker/',
    interfaceRefreshInterval: '2s',
    routeRefreshInterval: '3s',
    ipForwarding: 'Disabled',
    prometheusProcessMetricsEnabled: false,
    vxlanVNI: 77,
    vxlanDSCPCopyEnabled: true,
    bpfTunnelUDPChecksum: 'Enabled',
    healthEnabled: false,
    healthHost: '127.0.0.1',
    healthPort: 1,
    interfacePrefix: 'veth',
    logSeverityScreen: 'Warning',
    prometheusMetricsEnabled: true,
    prometheusMetricsHost: '::1',
    prometheusMetricsPort: 2,
    vxlanPort: 4790,
  }
  const resolved = resolve(spec)
  expect(reasons(resolved)).toEqual([])
  expect([...resolved.inForce.keys()].sort()).toEqual(allFields.map(({ name }) => name))
  expect(resolved.config).toEqual({
    compile: {
      interfacePrefix: 'veth',
      dataInterfacePattern: 'ens.*',
      excludedInterfaces: '^(?:eth9)$|^docker',
      forwards: false,
      services: { mode: 'Standard', backendSelection: 'Maglev', excluded: [parseCidr('10.9.0.0/16')], externalIPs: false },
      nodes: {
        nodePortAddresses: [parseCidr('10.0.0.0/8')],
        tunnelBack: [parseCidr('fd00::/8')],
        nodesInside: true,
        failsafes: { inbound: [], outbound: [{ protocol: 17, port: 53, net: parseCidr('10.0.0.0/8') }] },
      },
      knobs: {
        tunnelVni: 77,
        tunnelPort: 4790,
        tunnelDscp: true,
        tunnelChecksum: true,
        connectTcp: false,
        connectUdp: false,
        natPorts: { from: 100, to: 200 },
        dsr: true,
        sourceCheck: SOURCE_STRICT,
        strayService: STRAY_PASS,
        podToHost: POD_TO_HOST_DROP,
        timeouts: { tcpSyn: 1_000, tcpOpen: 2_000, tcpFin: 3_000, tcpRst: 4_000, udp: 5_000, udpStream: 6_000, icmp: 7_000 },
      },
      mapSizes: { conntrack: 2_000, frontends: 3_000, backends: 4_000, affinity: 5_000, addrs: 9_000, live: 4_000 },
      cgroup: '/sys/fs/cgroup',
    },
    health: { enabled: false, host: '127.0.0.1', port: 1 },
    prometheus: { enabled: true, host: '::1', port: 2 },
    showsProcess: false,
    periods: { hooks: 2_000, routes: 3_000 },
    proxyHealthPort: 0,
    flowTableGrows: false,
    cleansProxy: false,
    logLevel: 'warn',
  })
})

test('a field we do not have, or not yet, is refused by name', () => {
  expect(
    reasons(
      resolve({
        vxlanport: 1,
        bpfAttachType: 'TC',
        bpfConntrackTimeouts: { creationGracePeriod: '10s', sctp: '1s' },
        bpfExternalServiceMode: 'Direct',
        __proto__: 1,
      }),
    ),
  ).toEqual([
    'FelixConfiguration default: spec.bpfAttachType: programs are attached with tcx where the kernel has it, and with clsact elsewhere',
    'FelixConfiguration default: spec.bpfConntrackTimeouts.creationGracePeriod: a new flow has the same time-outs as any other',
    'FelixConfiguration default: spec.bpfConntrackTimeouts.sctp: there is no such field',
    'FelixConfiguration default: spec.bpfExternalServiceMode: must be one of Tunnel, DSR',
    'FelixConfiguration default: spec.vxlanport: there is no such field',
  ])
  expect(reasons(resolve({ bpfConntrackTimeouts: '1s' }))).toEqual([
    'FelixConfiguration default: spec.bpfConntrackTimeouts: must be an object',
  ])
  expect(allFields.filter(({ name }) => unimplemented.has(name))).toEqual([])
})

describe('the node’s own object', () => {
  const both = (node: Manifest, cluster: Manifest, previous?: Resolved): Resolved =>
    resolveConfig([layerFrom(felix('node.n1', node)), layerFrom(felix('default', cluster))], previous)

  test('goes first, field by field', () => {
    const { compile, health } = both(
      { vxlanPort: 1, bpfConntrackTimeouts: { udpTimeout: '1s' } },
      { vxlanPort: 2, healthPort: 3, bpfConntrackTimeouts: { udpTimeout: '2s', icmpTimeout: '3s' } },
    ).config
    const { tunnelPort, timeouts } = compile.knobs
    expect([tunnelPort, health.port, timeouts.udp, timeouts.icmp]).toEqual([1, 3, 1_000, 3_000])
  })

  test('when it is broken: the last good value, then the cluster’s, then the default', () => {
    const good = both({ vxlanPort: 1 }, { vxlanPort: 2 })
    const broken = both({ vxlanPort: 0 }, { vxlanPort: 2 }, good)
    expect([broken.config.compile.knobs.tunnelPort, reasons(broken)]).toEqual([
      1,
      ['FelixConfiguration node.n1: spec.vxlanPort: must be 1..65535'],
    ])
    expect(both({ vxlanPort: 0 }, { vxlanPort: 2 }).config.compile.knobs.tunnelPort).toBe(2)
    expect(both({ vxlanPort: 0 }, { vxlanPort: 0 }).config.compile.knobs.tunnelPort).toBe(4789)
    expect(both({ vxlanPort: 1 }, { vxlanPort: 0 }).config.compile.knobs.tunnelPort).toBe(1)
  })

  test('is found by its name', () => {
    const all = new Map(['default', 'node.n1', 'node.n2'].map((name) => [name, felix(name, {})]))
    expect(configurationsOf(all, 'n1').map(({ ref }) => ref)).toEqual(['FelixConfiguration/node.n1', 'FelixConfiguration/default'])
    expect(configurationsOf(all, 'n3').map(({ ref }) => ref)).toEqual(['FelixConfiguration/default'])
  })
})

test('a broken field keeps its last good value, however long, and a removed one goes back to its default', () => {
  const first = resolve({ vxlanPort: 1, healthPort: 2 })
  const second = resolve({ vxlanPort: 'x', healthPort: 3 }, first)
  const third = resolve({ vxlanPort: 'y', healthPort: 3 }, second)
  expect([third.config.compile.knobs.tunnelPort, third.config.health.port]).toEqual([1, 3])
  expect(resolve({ healthPort: 3 }, third).config.compile.knobs.tunnelPort).toBe(4789)
})

test('what needs a restart waits for it, and says so', () => {
  const first = resolve({ bpfMapSizeConntrack: 2_000 })
  const second = resolve({ bpfMapSizeConntrack: 4_000, bpfMapSizeNATBackend: 5_000, vxlanPort: 1 }, first)
  expect([second.config.compile.mapSizes, second.waiting, second.config.compile.knobs.tunnelPort]).toEqual([
    { conntrack: 2_000, frontends: 65_536, backends: 262_144, affinity: 16_384, addrs: 196_608, live: 65_536 },
    ['bpfMapSizeConntrack', 'bpfMapSizeNATBackend'],
    1,
  ])
  expect(resolve({ bpfMapSizeConntrack: 2_000 }, second).waiting).toEqual([])
})

test('no JSON breaks it, and what is in force is always complete', () => {
  const name = fc.oneof(fc.constantFrom(...allFields.map((field) => field.name.split('.')[0] ?? '')), fc.string())
  fc.assert(
    fc.property(fc.array(fc.dictionary(name, fc.jsonValue({ maxDepth: 2 })), { maxLength: 4 }), (specs) => {
      let resolved: Resolved | undefined
      for (const spec of specs) {
        resolved = resolve(spec, resolved)
        const [now, complete] = [resolved.config.compile, defaultConfig.compile].map((of) => [...Object.keys(of), ...Object.keys(of.knobs)])
        expect(now?.sort()).toEqual(complete?.sort())
      }
    }),
  )
})

describe('environment, file, the node, the cluster', () => {
  const file: ConfigLayer = { origin: 'file', ref: 'file x.yaml', spec: { vxlanPort: 2, healthPort: 2 }, pathOf: (field) => field }
  const objects = [
    layerFrom(felix('node.n1', { vxlanPort: 3, healthPort: 3, vxlanVNI: 3 })),
    layerFrom(felix('default', { vxlanVNI: 4, bpfPSNATPorts: '1:2' })),
  ]

  test('go first in this order, and the origin of each value is named', () => {
    const { config, inForce, rejected } = resolveConfig(
      [layerFromEnvironment({ FELIX_VXLANPORT: '1', PATH: '/' }), file, ...objects],
      undefined,
    )
    expect(rejected).toEqual([])
    expect(config).toMatchObject({ compile: { knobs: { tunnelPort: 1, tunnelVni: 3, natPorts: { from: 1, to: 2 } } }, health: { port: 2 } })
    expect([...inForce].map(([name, { origin }]) => `${name} ${origin}`).sort()).toEqual([
      'bpfPSNATPorts default',
      'healthPort file',
      'vxlanPort environment',
      'vxlanVNI node',
    ])
  })

  test('are named by their own words when they are wrong, and the next one is used', () => {
    const environment = layerFromEnvironment({
      FELIX_VXLANPORT: 'x',
      felix_healthport: '70000',
      FELIX_BPFCONNTRACKTIMEOUTS_UDPTIMEOUT: '0s',
      FELIX_IPTABLESBACKEND: 'NFT',
      FELIX_NOTHING: '1',
    })
    const resolved = resolveConfig([environment, file, ...objects], undefined)
    expect(reasons(resolved)).toEqual([
      'environment: FELIX_BPFCONNTRACKTIMEOUTS_UDPTIMEOUT: must be a duration like 1h30m, 90s or 250ms, at most 8760h',
      'environment: FELIX_IPTABLESBACKEND: there is no other data plane than eBPF',
      'environment: FELIX_NOTHING: there is no such field',
      'environment: FELIX_VXLANPORT: must be 1..65535',
      'environment: felix_healthport: must be 1..65535',
    ])
    expect(resolved.config).toMatchObject({ compile: { knobs: { tunnelPort: 2 } }, health: { port: 2 } })
  })

  test('a last good value is marked as such, apart from one that is set', () => {
    const before = resolve({ vxlanPort: 5 })
    expect(resolve({ vxlanPort: 'x' }, before).inForce.get('vxlanPort')).toEqual({ raw: 5, origin: 'last good' })
  })

  test.each([
    [{ FELIX_HEALTHENABLED: 'false' }, { healthEnabled: false }],
    [{ FELIX_NODEPORTADDRESSES: '10.0.0.0/8, fd00::/8' }, { nodePortAddresses: ['10.0.0.0/8', 'fd00::/8'] }],
    [
      { FELIX_FAILSAFEINBOUNDHOSTPORTS: '[{"protocol": "tcp", "port": 22}]' },
      { failsafeInboundHostPorts: [{ protocol: 'tcp', port: 22 }] },
    ],
    [{ FELIX_FAILSAFEINBOUNDHOSTPORTS: '[' }, { failsafeInboundHostPorts: '[' }],
    [{ FELIX_BPFCONNTRACKTIMEOUTS_UDPTIMEOUT: '5s' }, { bpfConntrackTimeouts: { udpTimeout: '5s' } }],
    [{ FELIX_LOGSEVERITYSCREEN: 'Debug' }, { logSeverityScreen: 'Debug' }],
    [{ XFELIX_HEALTHPORT: '1', FELIX_HEALTHPORT: undefined }, {}],
  ])('%j', (environment, spec) => {
    expect(layerFromEnvironment(environment).spec).toEqual(spec)
  })
})

test('a field may ask for what the agent does in any case', () => {
  expect(reasons(resolve({ ipipEnabled: false, wireguardEnabled: false, floatingIPs: 'Disabled' }))).toEqual([])
  expect(reasons(resolve({ ipipEnabled: true }))).toEqual([
    'FelixConfiguration default: spec.ipipEnabled: IP in IP is not supported: vxlanMode of pools is',
  ])
})

test('in Standard mode what kube-proxy has on a node is left to it', () => {
  const { config } = resolve({ bpfEnabled: false, bpfProxyIptablesCleanupEnabled: true, bpfKubeProxyHealthzPort: 10_256 })
  expect([config.compile.services.mode, config.cleansProxy, config.proxyHealthPort]).toEqual(['Standard', false, 0])
  const { config: bpf } = resolve({ bpfEnabled: true })
  expect([bpf.compile.services.mode, bpf.cleansProxy, bpf.proxyHealthPort]).toEqual(['BPF', true, 10_256])
})
