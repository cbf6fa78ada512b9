// SPDX-License-Identifier: Apache-2.0
/** Fields of FelixConfiguration that may change under live traffic without losing any. Layer: soak (pure). */
import type { Random } from '../random.ts'

/** Left out: what moves the tunnel's port, which nodes cannot do at one moment; what waits for a restart; time-outs
 * shorter than the pauses of flows. */
const CHOICES: Readonly<Record<string, readonly unknown[]>> = {
  bpfConnectTimeLoadBalancing: ['Enabled', 'TCP', 'Disabled'],
  bpfExternalServiceMode: ['Tunnel', 'DSR'],
  bpfDSROptoutCIDRs: [[], ['172.29.0.0/16', 'fd00:29::/64'], ['198.51.100.0/24']],
  bpfBackendSelection: ['Random', 'Maglev'],
  bpfExcludeCIDRsFromNAT: [[], ['203.0.113.0/28'], ['10.96.0.16/28', 'fd00:96::10/124']],
  nodePortAddresses: [[], ['172.29.0.0/16', 'fd00:29::/64']],
  natOutgoingExclusions: ['IPPoolsOnly', 'IPPoolsAndHostIPs'],
  bpfEnforceRPF: ['Disabled', 'Loose'],
  serviceLoopPrevention: ['Drop', 'Reject', 'Disabled'],
  bpfPSNATPorts: ['20000:29999', '40000:49999'],
  bpfConntrackTimeouts: [{}, { udpTimeout: '40s', tcpSynSent: '30s' }, { udpStreamTimeout: '90s' }],
  bpfDataIfacePattern: ['^eth0$', '^(eth|ens).*'],
  bpfMapSizeConntrackScaling: ['DoubleIfFull', 'Disabled'],
  bpfProxyIptablesCleanupEnabled: [true, false],
  prometheusMetricsEnabled: [true, false],
  bpfKubeProxyHealthzPort: [10_256, 0, 10_257],
}

/** One field with its new value. */
export function configuration(random: Random): Readonly<Record<string, unknown>> {
  const field = random.pick(Object.keys(CHOICES))
  return { [field]: random.pick(CHOICES[field] ?? []) }
}
