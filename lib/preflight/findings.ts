// SPDX-License-Identifier: Apache-2.0
/** What a preflight may find, what it means, and what to do about it: one table, of nodes and of the cluster.
 * Layer: lib/preflight (pure). */
import { CLUSTER_FINDINGS } from './cluster-findings.ts'
import { kind, type FindingKind, type FindingLevel } from './finding-kind.ts'

export { PROBE_GROUPS, type FindingKind, type ProbeGroup } from './finding-kind.ts'

/** For so long a node waits for the packets of others that look at the tunnel as well: pods begin seconds apart. */
export const PEERS_TIMEOUT_S = 15

const NODE_ADDRESS_ELSEWHERE = 'give the node its address on a device of Ethernet without a VLAN tag, a bond or a bridge among them'

export const FINDINGS = {
  architecture: kind(
    'kernel',
    'blocking',
    ['architecture'],
    (arch) => `the processor is ${arch}, and the programs are for x86-64 and arm64`,
    () => 'use nodes of these architectures',
  ),
  'kernel-too-old': kind(
    'kernel',
    'blocking',
    ['release', 'floor', 'refusal'],
    (release, floor, refusal) => `kernel ${release} is older than ${floor}, and refuses the programs: ${refusal}`,
    (_, floor) => `upgrade the kernel: ${floor} is the oldest`,
  ),
  'kernel-refuses': kind(
    'kernel',
    'blocking',
    ['release', 'refusal'],
    (release, refusal) => `kernel ${release} refuses the programs: ${refusal}`,
    (release) => `use another version of the kernel, and report that ${release} refuses them`,
  ),
  'kernel-realtime': kind(
    'kernel',
    'blocking',
    ['reason'],
    (reason) => `programs are not safe on this kernel: ${reason}`,
    () => 'use a kernel that is not real-time, or has that option',
  ),
  'kernel-limited': kind(
    'kernel',
    'warning',
    ['release', 'rules'],
    (release, rules) =>
      `kernel ${release} cannot verify functions one by one: a rule list has at most ${rules} rules, and staged policies are not evaluated`,
    () => 'use Linux 5.6 or newer that has type information (BTF) of its own',
  ),
  'hooks-missing': kind(
    'kernel',
    'blocking',
    ['what', 'refusal'],
    (what, refusal) => `the kernel has no ${what}: ${refusal}`,
    () => 'install the modules sch_ingress and cls_bpf of this kernel',
  ),
  'bpffs-missing': kind(
    'kernel',
    'blocking',
    [],
    () => 'the kernel has no BPF file system, in which programs outlive the agent',
    () => 'use a kernel with CONFIG_BPF_SYSCALL',
  ),
  'bpffs-unsafe': kind(
    'kernel',
    'blocking',
    ['reason'],
    (reason) => `pins are not safe on this node: ${reason}`,
    () => 'let root alone write there',
  ),
  'cgroup2-missing': kind(
    'kernel',
    'blocking',
    [],
    () => 'the kernel has no cgroup2, by which services are translated for processes of the node',
    () => 'use a kernel with CONFIG_CGROUPS and CONFIG_CGROUP_BPF',
  ),
  'privileges-missing': kind(
    'kernel',
    'blocking',
    ['capabilities'],
    (capabilities) => `pods lack ${capabilities} here, without which programs cannot be loaded`,
    () => 'let security policies of the node and of the cluster give pods of this namespace these capabilities',
  ),
  'host-path': kind(
    'kernel',
    'blocking',
    ['path', 'reason'],
    (path, reason) => `the node's folder ${path} cannot be written: ${reason}`,
    (path) => `let ${path} be on a file system that can be written; of plugins spec.cni.binDir and spec.cni.confDir may name others`,
  ),
  'jit-off': kind(
    'kernel',
    'warning',
    [],
    () => 'the kernel interprets programs instead of compiling them, and forwards slowly',
    () => 'set the sysctl net.core.bpf_jit_enable to 1',
  ),
  'mtu-small': kind(
    'devices',
    'blocking',
    ['device', 'mtu', 'least'],
    (device, mtu, least) =>
      `${device} has an MTU of ${mtu}: pods are left less than 1280 bytes beside the tunnel's headers, for which it takes ${least}`,
    (device, _, least) => `set the MTU of ${device} to ${least} or more`,
  ),
  'mtu-exceeded': kind(
    'devices',
    'blocking',
    ['device', 'mtu', 'wanted'],
    (device, mtu, wanted) => `${device} has an MTU of ${mtu}, and pods' packets of ${wanted} bytes with the tunnel's headers do not fit`,
    (device, _, wanted) => `set the MTU of ${device} higher, or spec.netplaneNetwork.mtu of the Installation below ${wanted}`,
  ),
  'node-device-vlan': kind(
    'devices',
    'blocking',
    ['device', 'why'],
    (device, why) => `${device} is a tagged VLAN, on which programs do not work, and the node needs it (${why})`,
    () => NODE_ADDRESS_ELSEWHERE,
  ),
  'device-vlan': kind(
    'devices',
    'warning',
    ['device', 'why'],
    (device, why) => `${device} is a tagged VLAN, on which programs do not work (${why})`,
    (device) => `expect neither node ports nor policy of the host there, or let FelixConfiguration's interfaceExclude name ${device}`,
  ),
  'node-device-kind': kind(
    'devices',
    'blocking',
    ['device', 'why'],
    (device, why) => `${device} is no Ethernet device, and the node needs it (${why})`,
    () => NODE_ADDRESS_ELSEWHERE,
  ),
  'device-kind': kind(
    'devices',
    'warning',
    ['device', 'why'],
    (device, why) => `${device} is no Ethernet device, and has no programs (${why})`,
    (device) => `expect neither node ports nor policy of the host there, or let FelixConfiguration's interfaceExclude name ${device}`,
  ),
  'ipvs-device': kind(
    'devices',
    'blocking',
    ['device', 'addresses'],
    (device, addresses) => `${device} has ${addresses} addresses of services: kube-proxy's IPVS mode runs here or has left them`,
    () => 'switch kube-proxy to iptables mode, then restart the node',
  ),
  'ipvs-services': kind(
    'devices',
    'blocking',
    ['services'],
    (services) => `the kernel serves ${services} services by IPVS`,
    () => 'switch kube-proxy to iptables mode, then restart the node; stop any other program that uses IPVS',
  ),
  'foreign-device': kind(
    'devices',
    'warning',
    ['data plane', 'devices'],
    (owner, devices) => `devices of ${owner} are there: ${devices}`,
    (owner) => `remove ${owner} when its pods have moved, and restart the node or delete the devices`,
  ),
  'proxy-modes': kind(
    'others',
    'warning',
    ['modes'],
    (modes) => `rules of more than one mode of kube-proxy are there: ${modes}`,
    () => 'restart the node: one mode has left its rules',
  ),
  'proxy-ipvs-rules': kind(
    'others',
    'warning',
    [],
    () => "chains of kube-proxy's IPVS mode are there",
    () => 'switch kube-proxy to iptables mode, then restart the node',
  ),
  'data-plane-program': kind(
    'others',
    'blocking',
    ['data plane', 'place', 'program'],
    (owner, place, program) => `program ${program} of ${owner} runs at ${place}`,
    (owner) => `remove ${owner}, and restart the node`,
  ),
  'foreign-program': kind(
    'others',
    'warning',
    ['place', 'program'],
    (place, program) => `program ${program} of another runs at ${place}, and may take packets before or after ours`,
    () => 'find out whose it is (bpftool prog show), and that it lets all packets go on',
  ),
  'foreign-pins': kind(
    'others',
    'warning',
    ['data plane', 'path'],
    (owner, path) => `pins of ${owner} are there: ${path}`,
    (owner) => `remove ${owner}, then delete them or restart the node`,
  ),
  'cni-list-before': kind(
    'others',
    'blocking',
    ['file'],
    (file) => `the network configuration ${file} comes before ours by name: runtimes would pass over us`,
    () => 'delete it with the plugin that it belongs to, or set spec.cni.type of the Installation to Chained',
  ),
  'cni-list-after': kind(
    'others',
    'warning',
    ['file'],
    (file) => `the network configuration ${file} of another plugin is there, whose pods keep their network until they are made anew`,
    () => 'delete it with its plugin, and its pods after the installation',
  ),
  'cni-list-unusable': kind(
    'others',
    'blocking',
    ['reason'],
    (reason) => `the network configuration that we would be chained to cannot be used: ${reason}`,
    () => 'put it right, or let the Installation have spec.cni.type Netplane',
  ),
  'cni-list-missing': kind(
    'others',
    'warning',
    ['folder'],
    (folder) => `no network configuration of another plugin is in ${folder} to be chained to`,
    () => 'install the networking plugin, or set spec.cni.confDir of the Installation to where its configuration is',
  ),
  'firewall-drops': kind(
    'others',
    'warning',
    ['where', 'what', 'remedy'],
    (where, what) => `${where} drops ${what}`,
    (_, __, remedy) => `let it pass: ${remedy}`,
  ),
  'mark-bits': kind(
    'others',
    'blocking',
    ['where', 'bits', 'ours'],
    (where, bits, ours) =>
      `${where} uses packet mark bits ${bits}, of which ${ours} are ours: packets would pass unjudged or be judged twice`,
    () => 'let that program use other bits',
  ),
  unread: kind(
    'others',
    'warning',
    ['what', 'reason'],
    (what, reason) => `${what} could not be read: ${reason}`,
    () => 'put that right, and run the preflight again',
  ),
  'endpoint-brackets': kind(
    'endpoint',
    'blocking',
    ['host'],
    (host) => `the API server's host ${host} has brackets`,
    () => 'write the address without them',
  ),
  'endpoint-service': kind(
    'endpoint',
    'blocking',
    ['host', 'address'],
    (host, address) =>
      `${host} is ${host === address ? '' : `${address}, `}the address of the service default/kubernetes, which a service proxy has to serve`,
    () => "set CLUSTER_SERVICE_HOST to the API server's own address or that of its load balancer",
  ),
  'endpoint-unresolved': kind(
    'endpoint',
    'blocking',
    ['host', 'reason'],
    (host, reason) => `the name ${host} does not resolve: ${reason}`,
    () => "let the node's own DNS know it (/etc/resolv.conf), or /etc/hosts, of which a pod has a copy from when it was started",
  ),
  'endpoint-refused': kind(
    'endpoint',
    'blocking',
    ['address'],
    (address) => `${address} refuses connections`,
    () => 'check the port, and that an API server or load balancer listens there',
  ),
  'endpoint-timeout': kind(
    'endpoint',
    'blocking',
    ['address', 'milliseconds'],
    (address, ms) => `${address} does not answer within ${ms} ms`,
    () => 'check firewalls on the way, and take addresses that are not served out of the name',
  ),
  'endpoint-unreachable': kind(
    'endpoint',
    'blocking',
    ['address', 'reason'],
    (address, reason) => `${address} cannot be reached: ${reason}`,
    () => "check the node's routes, and take addresses that are not served out of the name",
  ),
  'endpoint-certificate': kind(
    'endpoint',
    'blocking',
    ['address', 'reason'],
    (address, reason) => `${address} shows a certificate that is not good: ${reason}`,
    () => "use a name that is in the API server's certificate, at a server of this cluster",
  ),
  'endpoint-token': kind(
    'endpoint',
    'blocking',
    ['address'],
    (address) => `the API server at ${address} does not know this cluster's service accounts`,
    () => 'set CLUSTER_SERVICE_HOST to a server of this cluster',
  ),
  'endpoint-answer': kind(
    'endpoint',
    'blocking',
    ['address', 'reason'],
    (address, reason) => `${address} does not answer as an API server: ${reason}`,
    () => 'set CLUSTER_SERVICE_HOST and CLUSTER_SERVICE_PORT to an API server',
  ),
  'endpoint-other-cluster': kind(
    'endpoint',
    'blocking',
    ['address', 'cluster', 'expected'],
    (address, cluster, expected) => `${address} is of another cluster: its namespace kube-system is ${cluster}, and not ${expected}`,
    () => 'take addresses of other clusters out of the name',
  ),
  'vxlan-port-device': kind(
    'vxlan',
    'warning',
    ['port', 'device'],
    (port, device) => `the VXLAN device ${device} has UDP port ${port}: ours would be taken before it, and not merged by the kernel`,
    (port, device) => `delete ${device} with what it belongs to, or set vxlanPort in FelixConfiguration to another than ${port}`,
  ),
  'vxlan-port-socket': kind(
    'vxlan',
    'warning',
    ['port', 'owner'],
    (port, owner) => `${owner} listens on UDP port ${port}, and would no longer get packets of our tunnel's network`,
    (port) => `stop it, or set vxlanPort in FelixConfiguration to another than ${port}`,
  ),
  'vxlan-send': kind(
    'vxlan',
    'blocking',
    ['port', 'reason'],
    (port, reason) => `what this node's processes send to UDP port ${port} does not leave: ${reason}`,
    (port) => `let firewalls of the node accept UDP port ${port} in what leaves`,
  ),
  'vxlan-lost-to': kind(
    'vxlan',
    'blocking',
    ['peer', 'peer address', 'port'],
    (peer, address, port) => `VXLAN from here to ${peer} is lost (UDP port ${port} of ${address}), and back it arrives`,
    (_, __, port) => `let the network between the nodes carry UDP port ${port} both ways`,
  ),
  'vxlan-lost-from': kind(
    'vxlan',
    'blocking',
    ['peer', 'peer address', 'port'],
    (peer, address, port) => `VXLAN from ${peer} to here is lost (UDP port ${port} of ${address})`,
    (_, __, port) => `let the network between the nodes carry UDP port ${port} both ways`,
  ),
  ...CLUSTER_FINDINGS,
} as const satisfies Readonly<Record<string, FindingKind>>

export type FindingCode = keyof typeof FINDINGS

export interface Finding {
  readonly code: FindingCode
  readonly args: readonly string[]
}

export function isFindingCode(text: string): text is FindingCode {
  return Object.hasOwn(FINDINGS, text)
}

export function finding(code: FindingCode, ...args: readonly (string | number)[]): Finding {
  return { code, args: args.map(String) }
}

export function levelOf(code: FindingCode): FindingLevel {
  return FINDINGS[code].level
}

/** "what it is; what to do" */
export function describe({ code, args }: Finding): string {
  return `${FINDINGS[code].text(args)}; ${FINDINGS[code].remedy(args)}`
}
