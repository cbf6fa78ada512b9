// SPDX-License-Identifier: Apache-2.0
/** Every field of FelixConfiguration that we obey: the one place that parsing, refusal and documentation come from.
 * Layer: agent/config (pure). */
import { durationText } from '#lib/base/time/duration.ts'
import {
  POD_TO_HOST_ACCEPT,
  POD_TO_HOST_DROP,
  SOURCE_ANY,
  SOURCE_LOOSE,
  SOURCE_STRICT,
  STRAY_DROP,
  STRAY_PASS,
  STRAY_REFUSE,
} from '#lib/base/bpf-constants.ts'
import { parsePort } from '#lib/base/ip.ts'
import type { Cidr } from '#lib/base/ip.ts'
import type { DataplaneMode } from '#lib/model/node.ts'
import type { BackendSelection } from '#lib/model/service.ts'
import { INTERFACE_PREFIX } from '#lib/model/pod.ts'
import { DEFAULT_IN, DEFAULT_OUT, failsafePorts, failsafesText } from './failsafes.ts'
import { cidrList, duration, flag, integer, interfaceNames, port, portRange, regularExpression, switched, text, word } from './parsers.ts'
import type { Parser } from './parsers.ts'

export interface Field<T> {
  /** below spec; "a.b" is field b of the object a */
  readonly name: string
  readonly parser: Parser<T>
  readonly fallback: T
  /** the default as it would be written; empty when there is none */
  readonly fallbackText: string
  readonly doc: string
  /** live: a change takes effect at once; restart: at the agent's next start */
  readonly change: 'live' | 'restart'
}

type Described<T> = Omit<Field<T>, 'fallbackText' | 'change'> & { readonly change?: Field<T>['change']; readonly fallbackText?: string }

function field<T>(described: Described<T>): Field<T> {
  return { change: 'live', fallbackText: String(described.fallback), ...described }
}

function timeout(name: string, fallback: number, doc: string): Field<number> {
  return field({ name: `bpfConntrackTimeouts.${name}`, parser: duration(fallback), fallback, fallbackText: durationText(fallback), doc })
}

function mapSize(name: string, fallback: number, doc: string): Field<number> {
  return field({ name, parser: integer(1_024, 16_777_216), fallback, doc, change: 'restart' })
}

/** The letters "NP". */
const TUNNEL_VNI = 0x4e50

/** Least rows of the table of endpoints that flows may stay with, of UDP ports and of services with affinity. */
export const LEAST_ROWS = 65_536

const NO_CIDRS: readonly Cidr[] = []

const host = text('a host name or address', /^[A-Za-z0-9.:-]{1,253}$/)

export const fields = {
  mode: field<DataplaneMode>({
    name: 'bpfEnabled',
    parser: switched({ on: 'BPF', off: 'Standard' }),
    fallback: 'BPF',
    fallbackText: 'true',
    doc: "Whether all services are served by the agent's programs (BPF mode), or pods' flows to them alone: what comes from the network and what the node's own processes ask is then kube-proxy's, which has to run (Standard mode). Open flows stay where they are until they end.",
  }),
  connectTime: field({
    name: 'bpfConnectTimeLoadBalancing',
    parser: word({ Enabled: { tcp: true, udp: true }, TCP: { tcp: true, udp: false }, Disabled: { tcp: false, udp: false } }),
    fallback: { tcp: true, udp: false },
    fallbackText: 'TCP',
    doc: 'Which sockets are sent to a backend when they connect, or with UDP when they send without having connected, so that their packets need no translation. Sockets of pods are left alone where they mean a node port, or a backend that may be the pod itself under a ClusterNetworkPolicy: rules see what was asked for in packets alone. UDP sockets can outlive their backend: Enabled is for those who know their clients.',
  }),
  externalServiceMode: field({
    name: 'bpfExternalServiceMode',
    parser: word({ Tunnel: 'Tunnel', DSR: 'DSR' }),
    fallback: 'Tunnel',
    doc: "How replies return to clients outside when the backend is on another node: in the tunnel through the node that took the request, or from the backend's node directly.",
  }),
  backendSelection: field<BackendSelection>({
    name: 'bpfBackendSelection',
    parser: word({ Random: 'Random', Maglev: 'Maglev' }),
    fallback: 'Random',
    doc: 'How flows from outside choose among endpoints: any, or the same one on whichever node they come to. The annotation netplane.io/backend-selection of a service goes first.',
  }),
  externalIPs: field({
    name: 'bpfServiceExternalIPs',
    parser: word({ Enabled: true, Disabled: false }),
    fallback: true,
    fallbackText: 'Enabled',
    doc: 'Whether services are reached by spec.externalIPs: addresses that whoever may write a Service chooses, of any host. A load balancer’s addresses, which a controller writes, are served in any case. Admission of Kubernetes (DenyServiceExternalIPs) refuses such Services; this leaves those alone that are there.',
  }),
  excluded: field({
    name: 'bpfExcludeCIDRsFromNAT',
    parser: cidrList,
    fallback: NO_CIDRS,
    fallbackText: '[]',
    doc: 'Service addresses that are left to others, like those of a DNS cache on each node. For single services there is the annotation netplane.io/nat-exclude-service: "true".',
  }),
  dsrOptOut: field({
    name: 'bpfDSROptoutCIDRs',
    parser: cidrList,
    fallback: NO_CIDRS,
    fallbackText: '[]',
    doc: 'Clients to which replies return through the tunnel although bpfExternalServiceMode is DSR.',
  }),
  nodePortAddresses: field({
    name: 'nodePortAddresses',
    parser: cidrList,
    fallback: NO_CIDRS,
    fallbackText: '[]',
    doc: "Where node ports are served: on the node's addresses in these ranges; on all of them, loopback included, when there are none.",
  }),
  natExclusions: field({
    name: 'natOutgoingExclusions',
    parser: word({ IPPoolsOnly: 'IPPoolsOnly', IPPoolsAndHostIPs: 'IPPoolsAndHostIPs' }),
    fallback: 'IPPoolsOnly',
    doc: "Destinations to which pods' flows are not masqueraded: addresses of pools, or those of nodes as well.",
  }),
  podToHost: field({
    name: 'defaultEndpointToHostAction',
    parser: word({ Drop: POD_TO_HOST_DROP, Return: POD_TO_HOST_ACCEPT, Accept: POD_TO_HOST_ACCEPT }),
    fallback: POD_TO_HOST_ACCEPT,
    fallbackText: 'Accept',
    doc: "What becomes of a pod's flows to its own node that its policy lets out: dropped, or let in where policy of the node's host endpoints does not object. Return and Accept are the same here.",
  }),
  failsafesIn: field({
    name: 'failsafeInboundHostPorts',
    parser: failsafePorts,
    fallback: DEFAULT_IN,
    fallbackText: failsafesText(DEFAULT_IN),
    doc: "Ports of the node that policy of its host endpoints never closes, with the network that may reach them so; none: from anywhere. Whatever is listed takes the default's place as a whole.",
  }),
  failsafesOut: field({
    name: 'failsafeOutboundHostPorts',
    parser: failsafePorts,
    fallback: DEFAULT_OUT,
    fallbackText: failsafesText(DEFAULT_OUT),
    doc: "The same of ports that the node's own processes ask. Endpoints of the service default/kubernetes are always among them.",
  }),
  dataInterfacePattern: field<string | undefined>({
    name: 'bpfDataIfacePattern',
    parser: regularExpression,
    fallback: undefined,
    fallbackText: '',
    doc: 'Names of further network devices that get the host programs. Those with an address of the node, a default route, the way to another node, or a network of their own have them without being named.',
  }),
  excludedInterfaces: field<string>({
    name: 'interfaceExclude',
    parser: interfaceNames,
    fallback: '^(?:kube-ipvs0)$',
    fallbackText: 'kube-ipvs0',
    doc: 'Names of devices that never get the host programs, by commas; /between slashes/ a regular expression. The node has no services at a device that is named.',
  }),
  hooksPeriod: field({
    name: 'interfaceRefreshInterval',
    parser: duration(1_000),
    fallback: 750,
    fallbackText: '750ms',
    doc: 'How often programs on devices, and pins, are compared with what is wanted: what is found then is repaired within a second. Changes that netlink tells of are seen at once.',
  }),
  routesPeriod: field({
    name: 'routeRefreshInterval',
    parser: duration(60_000),
    fallback: 60_000,
    fallbackText: '60s',
    doc: 'The same for routes, and the sysctls that go with them.',
  }),
  forwards: field({
    name: 'ipForwarding',
    parser: word({ Enabled: true, Disabled: false }),
    fallback: true,
    fallbackText: 'Enabled',
    doc: 'Whether the agent sees to it that the node forwards packets of the families that pods have (sysctls ip_forward, and forwarding of all for IPv6). Disabled: they stay as the node has them.',
  }),
  timeoutTcpSyn: timeout('tcpSynSent', 60_000, 'A TCP connection that is not open yet is forgotten after this time.'),
  timeoutTcpOpen: timeout(
    'tcpEstablished',
    432_000_000,
    'An open TCP connection without packets is forgotten after this time (five days, as the kernel does).',
  ),
  timeoutTcpFin: timeout('tcpFinsSeen', 120_000, 'A TCP connection that an end has closed (FIN) is forgotten after this time.'),
  timeoutTcpRst: timeout('tcpResetSeen', 10_000, 'A TCP connection that was reset is forgotten after this time.'),
  timeoutUdp: timeout('udpTimeout', 30_000, 'A UDP flow with packets in one direction only is forgotten after this time.'),
  timeoutUdpStream: timeout('udpStreamTimeout', 120_000, 'A UDP flow with packets in both directions is forgotten after this time.'),
  timeoutIcmp: timeout('icmpTimeout', 30_000, 'An ICMP echo without packets is forgotten after this time.'),
  mapConntrack: mapSize(
    'bpfMapSizeConntrack',
    512_000,
    'Entries of the flow table, for both families together; a connection to a service takes two. The least used make room for new ones.',
  ),
  flowTableGrows: field({
    name: 'bpfMapSizeConntrackScaling',
    parser: word({ DoubleIfFull: true, Disabled: false }),
    fallback: true,
    fallbackText: 'DoubleIfFull',
    doc: 'Whether the flow table becomes twice as large when live flows fill it: up to eight times bpfMapSizeConntrack, and a quarter of the free memory. It stays so.',
  }),
  mapFrontends: mapSize('bpfMapSizeNATFrontend', 65_536, 'Addresses and ports on which services are reached.'),
  mapBackends: mapSize(
    'bpfMapSizeNATBackend',
    262_144,
    'Endpoints of all service ports; room for a quarter of them, but at least 65536, is for those of UDP ports and of services with affinity.',
  ),
  mapAffinity: mapSize(
    'bpfMapSizeNATAffinity',
    16_384,
    'Clients of services with session affinity, at least 256 for each CPU. The least used make room for new ones.',
  ),
  mapAddresses: mapSize(
    'bpfMapSizeRoute',
    131_072,
    'Addresses of all pods and nodes of the cluster, of both families; those of services have room besides. Room costs 16 bytes each before anything is in it.',
  ),
  natPorts: field({
    name: 'bpfPSNATPorts',
    parser: portRange,
    fallback: { from: parsePort(20_000), to: parsePort(29_999) },
    fallbackText: '20000:29999',
    doc: 'Source ports for flows that cannot keep their own: masqueraded ones, and those that would look like another flow.',
  }),
  sourceCheck: field({
    name: 'bpfEnforceRPF',
    parser: word({ Disabled: SOURCE_ANY, Loose: SOURCE_LOOSE, Strict: SOURCE_STRICT }),
    fallback: SOURCE_ANY,
    fallbackText: 'Disabled',
    doc: 'What is asked of the source of a flow from the network: nothing, that there is a route to it (which a default route is for everybody), or that it came by the device of that route. Costs each new flow about a tenth.',
  }),
  strayService: field({
    name: 'serviceLoopPrevention',
    parser: word({ Drop: STRAY_DROP, Reject: STRAY_REFUSE, Disabled: STRAY_PASS }),
    fallback: STRAY_DROP,
    fallbackText: 'Drop',
    doc: "What becomes of packets to a service's address on a port that it does not have. Passed on, they could circle between node and router. An external or load-balancer address may be a host's: only what comes from the network, and would go to a router or back, counts there.",
  }),
  cgroup: field<string | undefined>({
    name: 'cgroupV2Path',
    parser: text('an absolute path', /^\//),
    fallback: undefined,
    fallbackText: '',
    doc: 'cgroup2 directory whose processes get connect-time load balancing; found by itself when not given.',
  }),
  healthEnabled: field({ name: 'healthEnabled', parser: flag, fallback: true, doc: 'Whether /liveness and /readiness are served.' }),
  healthHost: field({ name: 'healthHost', parser: host, fallback: 'localhost', doc: 'Where they are served.' }),
  proxyHealthPort: field({
    name: 'bpfKubeProxyHealthzPort',
    parser: integer(0, 65_535),
    fallback: 10_256,
    doc: 'TCP port of /healthz and /livez on all addresses of the node, for load balancers and clients that asked kube-proxy; 0: none.',
  }),
  cleansProxy: field({
    name: 'bpfProxyIptablesCleanupEnabled',
    parser: flag,
    fallback: true,
    doc: "Whether kube-proxy's rules of iptables, IPVS and nftables are removed from the node once the programs serve. What others have there stays, and so do open connections. false: for nodes on which a kube-proxy has to go on.",
  }),
  healthPort: field({ name: 'healthPort', parser: port, fallback: parsePort(9099), doc: 'On which TCP port.' }),
  interfacePrefix: field({
    name: 'interfacePrefix',
    parser: text('one to four lower-case letters or digits, beginning with a letter', /^[a-z][a-z0-9]{0,3}$/),
    fallback: INTERFACE_PREFIX,
    doc: "Names of the host side of pods' veths begin with this; 11 hex digits follow.",
  }),
  logLevel: field({
    name: 'logSeverityScreen',
    parser: word({ Debug: 'debug', Info: 'info', Warning: 'warn', Error: 'error', Fatal: 'fatal' }),
    fallback: 'info',
    fallbackText: 'Info',
    doc: 'What is logged: this and everything graver.',
  }),
  prometheusEnabled: field({ name: 'prometheusMetricsEnabled', parser: flag, fallback: false, doc: 'Whether /metrics is served.' }),
  prometheusHost: field({ name: 'prometheusMetricsHost', parser: host, fallback: '127.0.0.1', doc: 'Where it is served.' }),
  prometheusPort: field({ name: 'prometheusMetricsPort', parser: port, fallback: parsePort(9091), doc: 'On which TCP port.' }),
  prometheusProcess: field({
    name: 'prometheusProcessMetricsEnabled',
    parser: flag,
    fallback: true,
    doc: "Whether CPU time, memory and start of the agent's process are among them.",
  }),
  tunnelChecksum: field({
    name: 'bpfTunnelUDPChecksum',
    parser: word({ Enabled: true, Disabled: false }),
    fallback: false,
    fallbackText: 'Disabled',
    doc: "Whether packets of the tunnel between nodes have a UDP checksum: for networks that drop those without, which Disabled sends. Enabled: they leave by the kernel's device netplane-vxlan, which costs throughput. It needs Linux 6.0, and that no other VXLAN device has the port: a node without is not ready. Every node takes both kinds.",
  }),
  tunnelDscp: field({
    name: 'vxlanDSCPCopyEnabled',
    parser: flag,
    fallback: false,
    doc: 'Whether packets of the tunnel between nodes have the DSCP of the packet inside, which else is 0 for the network between the nodes. ECN is copied in any case, and what the network marks comes back (RFC 6040).',
  }),
  tunnelVni: field({
    name: 'vxlanVNI',
    parser: integer(1, 16_777_215),
    fallback: TUNNEL_VNI,
    doc: 'Network identifier in the packets of the tunnel between nodes; the same on all of them, and of no other tunnel on that port. Between a node that has taken a change and one that has not yet, the tunnel carries nothing.',
  }),
  tunnelPort: field({
    name: 'vxlanPort',
    parser: port,
    fallback: parsePort(4789),
    doc: 'UDP port of the tunnel between nodes; the same on all of them. Between a node that has taken a change and one that has not yet, the tunnel carries nothing.',
  }),
} as const

/** All of them, in the order of their names. */
export const allFields: readonly Field<unknown>[] = Object.values<Field<unknown>>(fields).sort((a, b) => (a.name < b.name ? -1 : 1))
