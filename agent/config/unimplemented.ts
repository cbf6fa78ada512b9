// SPDX-License-Identifier: Apache-2.0
/** Fields that FelixConfiguration has elsewhere and that we refuse, with why. Layer: agent/config (pure). */
import type { Schema } from '#lib/base/schema.ts'

type Type = NonNullable<Schema['type']>

export interface Refusal {
  /** what it is elsewhere */
  readonly type: Type
  readonly reason: string
  /** the one value that says what is done in any case */
  readonly unless?: string | boolean
}

interface Group {
  readonly reason: string
  readonly names: Partial<Readonly<Record<Type, readonly string[]>>>
}

const GROUPS: readonly Group[] = [
  {
    reason: 'there is no other data plane than eBPF',
    names: {
      string: [
        ...['iptablesBackend', 'iptablesFilterAllowAction', 'iptablesMangleAllowAction', 'iptablesFilterDenyAction'],
        ...['iptablesLockFilePath', 'iptablesLockTimeout', 'iptablesLockProbeInterval', 'iptablesPostWriteCheckInterval'],
        ...['nftablesMode', 'nftablesFilterAllowAction', 'nftablesMangleAllowAction', 'nftablesFilterDenyAction'],
        ...['chainInsertMode', 'iptablesRefreshInterval', 'nftablesRefreshInterval', 'ipsetsRefreshInterval', 'kubeNodePortRanges'],
        'iptablesNATOutgoingInterfaceFilter',
      ],
      integer: ['iptablesMarkMask', 'nftablesMarkMask', 'maxIpsetSize'],
    },
  },
  {
    reason: "there is nothing of another data plane to be told apart: untracked policy uses XDP wherever the device's driver has it",
    names: { boolean: ['xdpEnabled', 'genericXDPEnabled'], string: ['xdpRefreshInterval'] },
  },
  { reason: 'a new flow has the same time-outs as any other', names: { string: ['bpfConntrackTimeouts.creationGracePeriod'] } },
  { reason: 'only TCP, UDP and ICMP flows are tracked', names: { string: ['bpfConntrackTimeouts.genericTimeout'] } },
  {
    reason: 'flows end by their own time-outs: nothing here is to be tuned',
    names: {
      string: ['bpfConntrackMode', 'bpfConntrackLogLevel'],
      integer: ['bpfMapSizeConntrackCleanupQueue', 'bpfMapSizePerCpuConntrack'],
    },
  },
  { reason: 'superseded by bpfConnectTimeLoadBalancing', names: { boolean: ['bpfConnectTimeLoadBalancingEnabled'] } },
  {
    reason: "a node's own processes reach services at its devices in any case: there is nothing to switch",
    names: { string: ['bpfHostNetworkedNATWithoutCTLB'] },
  },
  { reason: 'programs are attached with tcx where the kernel has it, and with clsact elsewhere', names: { string: ['bpfAttachType'] } },
  { reason: 'devices without Ethernet headers are not supported', names: { string: ['bpfL3IfacePattern'] } },
  { reason: "offloads are the node's own: ethtool -K sets them", names: { string: ['bpfDisableGROForIfaces'] } },
  {
    reason: "the kernel's own connection tracking is neither used nor turned off, and no marks are left on packets for others",
    names: { integer: ['bpfExtToServiceConnmark'], array: ['bpfForceTrackPacketsFromIfaces'], boolean: ['bpfHostConntrackBypass'] },
  },
  { reason: 'packets take the shortest way that the kernel has, found out at the start', names: { string: ['bpfRedirectToPeer'] } },
  { reason: 'changes are written as they come: those that come meanwhile go together', names: { string: ['bpfKubeProxyMinSyncPeriod'] } },
  { reason: 'EndpointSlices are what is read: there is nothing to switch', names: { boolean: ['bpfKubeProxyEndpointSlicesEnabled'] } },
  {
    reason: 'tables of policy have room of their own: docs/generated/maps.md',
    names: { integer: ['bpfMapSizeIPSets'] },
  },
  { reason: 'there is room for 4096 interfaces of a node', names: { integer: ['bpfMapSizeIfState'] } },
  {
    reason: 'tables of Maglev are made as services need them: docs/services.md',
    names: { integer: ['bpfMaglevMaxServices', 'bpfMaglevMaxEndpointsPerService'] },
  },
  {
    reason: 'fragments go the way of their first one: there is nothing to switch',
    names: { boolean: ['bpfIPFragmentReassemblyEnabled'], string: ['bpfIPFragTimeout'] },
  },
  { reason: 'a node has no address of its own for the tunnel', names: { string: ['bpfOverlayHostSourceIP'] } },
  {
    reason: 'meshes are not told apart',
    names: { string: ['istioAmbientMode', 'istioDSCPMark'], boolean: ['sidecarAccelerationEnabled'] },
  },
  { reason: 'nodes of one subnet reach each other as their routes say', names: { string: ['localSubnetL2Reachability'] } },
  {
    reason: 'metrics are served without TLS: on the loopback address unless prometheusMetricsHost says otherwise',
    names: { string: ['prometheusMetricsCAFile', 'prometheusMetricsCertFile', 'prometheusMetricsKeyFile', 'prometheusMetricsClientAuth'] },
  },
  { reason: "the cloud's own settings are left to its administrator", names: { string: ['awsSrcDstCheck', 'awsRequestTimeout'] } },
  {
    reason: 'the agent programs the kernel itself, which answers at once',
    names: {
      string: ['dataplaneDriver', 'dataplaneWatchdogTimeout', 'netlinkTimeout'],
      boolean: ['useInternalDataplaneDriver'],
    },
  },
  {
    reason: 'conditions of Node and Pod say what is in place as soon as it changes',
    names: { string: ['reportingInterval', 'reportingTTL', 'endpointReportingDelay'], boolean: ['endpointReportingEnabled'] },
  },
  {
    reason: "the kernel's own connection tracking decides nothing here",
    names: { boolean: ['disableConntrackInvalidCheck'] },
  },
  { reason: 'what policy denies is dropped: a staged policy only says what it would do', names: { string: ['dropActionOverride'] } },
  { reason: 'debug pages are those of health: /config, /policy/rules', names: { integer: ['debugPort'], string: ['debugHost'] } },
  {
    reason: 'is for other platforms',
    names: { string: ['windowsManageFirewallRules', 'metadataAddr', 'openstackRegion'], integer: ['metadataPort'] },
  },
  {
    reason: 'programs write no log: netplanectl explain says what becomes of a packet, counters what became of those that passed',
    names: { string: ['bpfLogLevel', 'bpfCTLBLogFilter'], object: ['bpfLogFilters'] },
  },
  {
    reason: 'the kernel counts run time of programs when its sysctl kernel.bpf_stats_enabled says so',
    names: { string: ['bpfProfiling'] },
  },
  {
    reason: "sysctls of the node's own hardening are left as they are: one that is set could not be put back",
    names: { boolean: ['bpfDisableUnprivileged'], string: ['bpfJITHardening'] },
  },
  {
    reason: 'netplanectl shows what policy does: there is nothing to switch on',
    names: { boolean: ['bpfPolicyDebugEnabled'], string: ['policySyncPathPrefix'] },
  },
  {
    reason: 'flow logs are not implemented',
    names: {
      string: [...['flowLogsFlushInterval', 'flowLogsGoldmaneServer', 'flowLogsLocalReporter', 'flowLogsPolicyEvaluationMode']],
      integer: ['bpfExportBufferSizeMB'],
    },
  },
  {
    reason: 'the action Log is not supported in eBPF mode',
    names: { string: ['logPrefix', 'logActionRateLimit'], integer: ['logActionRateLimitBurst'] },
  },
  {
    reason: 'logs go to standard output, and the runtime keeps them',
    names: { string: ['logSeverityFile', 'logSeveritySys', 'logFilePath', 'logDebugFilenameRegex'] },
  },
  { reason: 'an apply that does not end in two minutes is what fails liveness', names: { array: ['healthTimeoutOverrides'] } },
  {
    reason: 'there is no Go in the agent',
    names: {
      boolean: ['prometheusGoMetricsEnabled', 'debugDisableLogDropping'],
      integer: ['goGCThreshold', 'goMemoryLimitMB', 'goMaxProcs'],
    },
  },
  { reason: 'WireGuard is not implemented', names: wireguard() },
  { reason: 'both families are served wherever nodes and pods have addresses of them', names: { boolean: ['ipv6Support'] } },
  {
    reason: 'what fits the tunnel follows from the MTU of the device beneath: there is nothing to set',
    names: { string: ['mtuIfacePattern'], integer: ['vxlanMTU', 'vxlanMTUV6', 'ipipMTU'] },
  },
  { reason: 'flows are masqueraded with the address that their node has in the cluster', names: { string: ['natOutgoingAddress'] } },
  { reason: 'a pod sends with its own addresses alone', names: { string: ['workloadSourceSpoofing'] } },
  { reason: 'floating addresses are not implemented', names: { string: ['floatingIPs'] } },
  {
    reason: 'our routes have the protocol number 80, and those of others are left alone',
    names: {
      boolean: ['removeExternalRoutes', 'routeSyncDisabled'],
      integer: ['deviceRouteProtocol'],
      string: ['deviceRouteSourceAddress', 'deviceRouteSourceAddressIPv6'],
    },
  },
  {
    reason: 'routes to pods of other nodes are rows of a map, made of nodes and pools',
    names: { string: ['routeSource', 'programClusterRoutes'], array: ['routeTableRanges'], object: ['routeTableRange'] },
  },
  {
    reason: 'tunnelled packets are taken from nodes of the cluster alone',
    names: { array: ['externalNodesList'], boolean: ['allowVXLANPacketsFromWorkloads', 'allowIPIPPacketsFromWorkloads'] },
  },
  { reason: "the CNI plugin asks the agent's socket when a pod is programmed", names: { string: ['endpointStatusPathPrefix'] } },
  { reason: 'what the kernel can do is found out by trying', names: { string: ['featureDetectOverride', 'featureGates'] } },
  {
    reason: 'nothing is reported to anybody',
    names: { boolean: ['usageReportingEnabled'], string: ['usageReportingInitialDelay', 'usageReportingInterval'] },
  },
  { reason: "pools' vxlanMode says it", names: { boolean: ['vxlanEnabled'] } },
  { reason: 'IP in IP is not supported: vxlanMode of pools is', names: { boolean: ['ipipEnabled'] } },
  { reason: 'is called bpfPSNATPorts here', names: { string: ['natPortRange'] } },
  { reason: 'is called bpfProxyIptablesCleanupEnabled here', names: { boolean: ['bpfKubeProxyIptablesCleanupEnabled'] } },
]

function wireguard(): Group['names'] {
  return {
    boolean: [
      'wireguardEnabled',
      'wireguardEnabledV6',
      'wireguardHostEncryptionEnabled',
      'wireguardThreadingEnabled',
      'prometheusWireGuardMetricsEnabled',
    ],
    integer: ['wireguardListeningPort', 'wireguardListeningPortV6', 'wireguardMTU', 'wireguardMTUV6', 'wireguardRoutingRulePriority'],
    string: ['wireguardInterfaceName', 'wireguardInterfaceNameV6', 'wireguardKeepAlive'],
  }
}

/** Values that ask for what is done anyway: a manifest that lists every field does no harm with them. */
const ALREADY_SO: Readonly<Record<string, string | boolean>> = {
  bpfHostNetworkedNATWithoutCTLB: 'Enabled',
  bpfKubeProxyEndpointSlicesEnabled: true,
  floatingIPs: 'Disabled',
  ipipEnabled: false,
  ipv6Support: true,
  usageReportingEnabled: false,
  wireguardEnabled: false,
  wireguardEnabledV6: false,
  workloadSourceSpoofing: 'Disabled',
}

/** Field below spec → what it is elsewhere, and why it is refused. */
export const unimplemented: ReadonlyMap<string, Refusal> = new Map(
  GROUPS.flatMap(({ reason, names }) =>
    Object.entries(names).flatMap(([type, list]) => list.map((name) => [name, refusal(asType(type), name, reason)] as const)),
  ),
)

function refusal(type: Type, name: string, reason: string): Refusal {
  const unless = ALREADY_SO[name]
  return unless === undefined ? { type, reason } : { type, reason, unless }
}

function asType(type: string): Type {
  return type === 'array' || type === 'boolean' || type === 'integer' || type === 'object' ? type : 'string'
}
