// SPDX-License-Identifier: Apache-2.0
/** Fields that FelixConfiguration has elsewhere and that we refuse, with why. Layer: agent/config (pure). */

const ONLY_EBPF = 'there is no other data plane than eBPF'
const NOT_YET = 'is not implemented'
const NO_SWEEP = 'flows end by their own time-outs: nothing here is to be tuned'
const NO_POLICY = 'netplanectl shows what policy does: there is nothing to switch on'
const NO_OVERLAY = "pools' vxlanMode says it: there is no device to configure"

const GROUPS: readonly (readonly [reason: string, names: readonly string[]])[] = [
  [
    ONLY_EBPF,
    [
      'bpfEnabled',
      'iptablesBackend',
      'nftablesMode',
      'chainInsertMode',
      'iptablesFilterAllowAction',
      'iptablesMangleAllowAction',
      'iptablesFilterDenyAction',
      'iptablesMarkMask',
      'nftablesMarkMask',
      'iptablesRefreshInterval',
      'nftablesRefreshInterval',
      'ipsetsRefreshInterval',
    ],
  ],
  ['a new flow has the same time-outs as any other', ['bpfConntrackTimeouts.creationGracePeriod']],
  ['only TCP, UDP and ICMP flows are tracked', ['bpfConntrackTimeouts.genericTimeout']],
  [NO_SWEEP, ['bpfConntrackMode', 'bpfConntrackLogLevel', 'bpfMapSizeConntrackCleanupQueue', 'bpfMapSizePerCpuConntrack']],
  ['superseded by bpfConnectTimeLoadBalancing', ['bpfConnectTimeLoadBalancingEnabled']],
  [
    NOT_YET,
    [
      'bpfAttachType',
      'bpfL3IfacePattern',
      'bpfDisableGROForIfaces',
      'bpfHostNetworkedNATWithoutCTLB',
      'bpfExtToServiceConnmark',
      'bpfForceTrackPacketsFromIfaces',
      'bpfHostConntrackBypass',
      'bpfRedirectToPeer',
      'bpfKubeProxyMinSyncPeriod',
      'bpfMapSizeRoute',
      'bpfMapSizeIPSets',
      'bpfMapSizeIfState',
      'bpfLogLevel',
      'bpfLogFilters',
      'bpfCTLBLogFilter',
      'bpfProfiling',
      'bpfExportBufferSizeMB',
      'bpfDisableUnprivileged',
      'bpfJITHardening',
      'logSeverityFile',
      'logSeveritySys',
      'logFilePath',
      'healthTimeoutOverrides',
      'prometheusGoMetricsEnabled',
      'prometheusProcessMetricsEnabled',
      'prometheusWireGuardMetricsEnabled',
      'interfaceExclude',
      'interfaceRefreshInterval',
      'routeRefreshInterval',
      'ipv6Support',
      'ipForwarding',
      'mtuIfacePattern',
      'natOutgoingAddress',
      'workloadSourceSpoofing',
      'floatingIPs',
      'removeExternalRoutes',
      'deviceRouteProtocol',
      'routeSource',
      'routeSyncDisabled',
      'routeTableRanges',
      'programClusterRoutes',
      'externalNodesList',
      'endpointStatusPathPrefix',
      'flowLogsFlushInterval',
      'featureDetectOverride',
      'featureGates',
      'usageReportingEnabled',
    ],
  ],
  [NO_POLICY, ['bpfPolicyDebugEnabled', 'policySyncPathPrefix', 'flowLogsPolicyEvaluationMode']],
  [
    NO_OVERLAY,
    [
      'vxlanEnabled',
      'vxlanVNI',
      'vxlanMTU',
      'vxlanMTUV6',
      'ipipEnabled',
      'ipipMTU',
      'wireguardEnabled',
      'wireguardEnabledV6',
      'allowVXLANPacketsFromWorkloads',
      'allowIPIPPacketsFromWorkloads',
    ],
  ],
  ['is called bpfPSNATPorts here', ['natPortRange']],
  ['is called bpfProxyIptablesCleanupEnabled here', ['bpfKubeProxyIptablesCleanupEnabled']],
]

/** Field below spec → why it is refused. */
export const unimplemented: ReadonlyMap<string, string> = new Map(
  GROUPS.flatMap(([reason, names]) => names.map((name) => [name, reason] as const)),
)
