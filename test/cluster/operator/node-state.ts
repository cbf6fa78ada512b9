// SPDX-License-Identifier: Apache-2.0
/** What a node has that networking changes, to be compared before and after. Layer: test.
 *
 * What may differ is in docs/operator.md: pods' own veths, names and routes of npl… and what is kept of them; contents
 * of files, addresses that come of themselves, what kube-proxy has for services, and the order of rules of iptables. */
import type { Cluster } from '../../../testkit/kubernetes/cluster.ts'

const SETTLED_MS = 2000

const SCRIPT = `
links() { ip -br link | sed 's/@[^ ]*//' | awk '{ print $1, $2, $3 }'; }
echo links; links | grep -v ^npl
echo routes; for family in -4 -6; do ip $family route show table all; done | grep -v 'dev npl' | sed 's/ expires [0-9]*sec//' | sort
echo rules; ip -4 rule; ip -6 rule
echo queues; links | grep -v ^npl | while read -r name _; do tc qdisc show dev "$name"; done
echo programs; bpftool net | grep -v npl
echo programs of cgroups; bpftool cgroup tree /sys/fs/cgroup/unified | awk 'NF > 1 { $1 = "" } { print }'
echo settings; sysctl -ar '^net\\.ipv[46]\\.(ip_|conf\\.(all|default|lo|eth0)\\.)' 2>/dev/null
echo files; find /sys/fs/bpf /etc/cni/net.d /opt/cni/bin /var/lib/netplane /run/netplane -mindepth 1 -not -name '*.debug' 2>/dev/null |
  grep -Ev '^/run/netplane/(cgroup$|cni(/|$))' | sort
echo mounts; grep ' /run/netplane' /proc/mounts
echo tables; nft -s list tables | sort
services='^(:|-A )KUBE-(SERVICES|NODEPORTS|EXTERNAL-SERVICES|SVC|SVL|SEP|EXT|FW)'
echo iptables; for save in iptables-save ip6tables-save; do
  $save | grep -Ev "^#|$services" | sed 's/ \\[[0-9]*:[0-9]*\\]$//' | awk '/^\\*/ { table = $0 } { print table, $0 }' | sort
done
echo nftables; nft -s list tables | while read -r _ family table; do
  case $table in kube-proxy|filter|nat|mangle|raw|security) ;; *) nft -s list table "$family" "$table" ;; esac
done
true`

/** A line each, by node. */
export async function nodeStates(cluster: Cluster): Promise<Readonly<Record<string, readonly string[]>>> {
  const entries = cluster.nodes.map(async (node) => {
    const text = await cluster.lab.mustRun(`node/${node}`, ['sh', '-c', SCRIPT])
    return [node, text.trim().split('\n')] as const
  })
  return Object.fromEntries(await Promise.all(entries))
}

/** The same once it does not change any more: kubelet and kube-proxy write their rules a while after they start. */
export async function settledNodeStates(cluster: Cluster): Promise<Readonly<Record<string, readonly string[]>>> {
  for (let before = await nodeStates(cluster); ;) {
    await new Promise((resolve) => setTimeout(resolve, SETTLED_MS))
    const now = await nodeStates(cluster)
    if (JSON.stringify(now) === JSON.stringify(before)) return now
    before = now
  }
}
