// SPDX-License-Identifier: Apache-2.0
/** The configuration as the agent uses it, put together field by field. Layer: agent/config (pure). */
import type { Port } from '#lib/base/ip.ts'
import type { KnobSettings, MapSizes } from '#agent/compile/desired.ts'
import type { CompileSettings } from '#agent/compile/settings.ts'
import { LEAST_ROWS, fields } from './schema.ts'
import type { Field } from './schema.ts'

export interface Served {
  readonly enabled: boolean
  readonly host: string
  readonly port: Port
}

/** Periods of resyncs with the kernel, in ms. */
export interface Periods {
  readonly hooks: number
  readonly routes: number
}

export interface Config {
  readonly compile: CompileSettings
  readonly health: Served
  readonly prometheus: Served
  readonly showsProcess: boolean
  readonly periods: Periods
  /** 0: off */
  readonly proxyHealthPort: number
  readonly flowTableGrows: boolean
  /** kube-proxy's rules go once ours serve */
  readonly cleansProxy: boolean
  readonly logLevel: string
}

/** Gives the value in force of a field. */
type Read = <T>(field: Field<T>) => T

export function assemble(read: Read): Config {
  const isBpf = read(fields.mode) === 'BPF'
  // each is read in any case: what is in force of it can be asked
  const [proxyHealthPort, cleansProxy] = [read(fields.proxyHealthPort), read(fields.cleansProxy)]
  return {
    compile: {
      interfacePrefix: read(fields.interfacePrefix),
      dataInterfacePattern: read(fields.dataInterfacePattern),
      excludedInterfaces: read(fields.excludedInterfaces),
      forwards: read(fields.forwards),
      services: {
        mode: read(fields.mode),
        backendSelection: read(fields.backendSelection),
        excluded: read(fields.excluded),
        externalIPs: read(fields.externalIPs),
      },
      nodes: {
        nodePortAddresses: read(fields.nodePortAddresses),
        tunnelBack: read(fields.dsrOptOut),
        nodesInside: read(fields.natExclusions) === 'IPPoolsAndHostIPs',
        failsafes: { inbound: read(fields.failsafesIn), outbound: read(fields.failsafesOut) },
      },
      knobs: knobs(read),
      mapSizes: mapSizes(read),
      cgroup: read(fields.cgroup),
    },
    health: { enabled: read(fields.healthEnabled), host: read(fields.healthHost), port: read(fields.healthPort) },
    prometheus: { enabled: read(fields.prometheusEnabled), host: read(fields.prometheusHost), port: read(fields.prometheusPort) },
    showsProcess: read(fields.prometheusProcess),
    periods: { hooks: read(fields.hooksPeriod), routes: read(fields.routesPeriod) },
    proxyHealthPort: isBpf ? proxyHealthPort : 0,
    flowTableGrows: read(fields.flowTableGrows),
    cleansProxy: isBpf && cleansProxy,
    logLevel: read(fields.logLevel),
  }
}

/** Every field at its default. */
export const defaultConfig: Config = assemble((field) => field.fallback)

function knobs(read: Read): KnobSettings {
  const connectTime = read(fields.connectTime)
  return {
    tunnelVni: read(fields.tunnelVni),
    tunnelPort: read(fields.tunnelPort),
    tunnelDscp: read(fields.tunnelDscp),
    tunnelChecksum: read(fields.tunnelChecksum),
    connectTcp: connectTime.tcp,
    connectUdp: connectTime.udp,
    natPorts: read(fields.natPorts),
    dsr: read(fields.externalServiceMode) === 'DSR',
    sourceCheck: read(fields.sourceCheck),
    strayService: read(fields.strayService),
    podToHost: read(fields.podToHost),
    timeouts: {
      tcpSyn: read(fields.timeoutTcpSyn),
      tcpOpen: read(fields.timeoutTcpOpen),
      tcpFin: read(fields.timeoutTcpFin),
      tcpRst: read(fields.timeoutTcpRst),
      udp: read(fields.timeoutUdp),
      udpStream: read(fields.timeoutUdpStream),
      icmp: read(fields.timeoutIcmp),
    },
  }
}

function mapSizes(read: Read): MapSizes {
  const [frontends, backends] = [read(fields.mapFrontends), read(fields.mapBackends)]
  return {
    conntrack: read(fields.mapConntrack),
    frontends,
    backends,
    affinity: read(fields.mapAffinity),
    addrs: read(fields.mapAddresses) + frontends,
    live: Math.min(backends, Math.max(LEAST_ROWS, Math.ceil(backends / 4))),
  }
}
