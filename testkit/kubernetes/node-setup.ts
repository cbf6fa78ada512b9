// SPDX-License-Identifier: Apache-2.0
/** What makes a lab's node one that kubelet and containerd can live on: the script and their configurations.
 * Layer: testkit (pure). */
import { join } from 'node:path'
import { quote } from '../../lab/network/node-root.ts'

/** cgroup v1 hierarchies that kubelet and runc want; cgroup2 stands beside them. */
export const CONTROLLERS = ['cpu', 'cpuacct', 'cpuset', 'memory', 'devices', 'freezer', 'blkio', 'pids', 'systemd'] as const

/** kubelet sets these for the whole machine: it finds them as it wants them, and leaves the machine's own alone. */
const MACHINE_SYSCTLS = {
  'vm/overcommit_memory': 1,
  'vm/panic_on_oom': 0,
  'kernel/panic': 10,
  'kernel/panic_on_oops': 1,
  'kernel/keys/root_maxkeys': 1_000_000,
  'kernel/keys/root_maxbytes': 25_000_000,
} as const

export interface NodeSetup {
  readonly node: string
  /** its own, on disk: images, containers, volumes, what is written to /etc and /opt */
  readonly folder: string
  /** of all v1 hierarchies, as the machine sees it: the parent of the node's pods */
  readonly cgroup: string
  readonly addresses: readonly string[]
  /** names that it knows by itself */
  readonly hosts: Readonly<Record<string, string>>
  /** CNI plugins that it has instead of Debian's */
  readonly plugins: readonly string[]
}

/** For `sh -euc` as a process of the node. */
export function nodeSetupScript(setup: NodeSetup): string {
  const folder = quote(setup.folder)
  return [
    `mkdir -p ${folder}/sysctl`,
    // what the node's programs install is seen by the node alone
    ...['etc', 'opt'].flatMap((name) => [
      `mkdir -p ${folder}/${name} ${folder}/${name}.work`,
      `mount -n -t overlay overlay -o lowerdir=/${name},upperdir=${folder}/${name},workdir=${folder}/${name}.work /${name}`,
    ]),
    // and what agents keep over a reboot is that of their own node
    `mkdir -p ${folder}/keep /var/lib/netplane`,
    `mount -n --bind ${folder}/keep /var/lib/netplane`,
    'mkdir -p /etc/cni/net.d /opt/cni/bin',
    `cp -n ${[...setup.plugins.map(quote), '/usr/lib/cni/*'].join(' ')} /opt/cni/bin/`,
    // pods take their resolver from the cluster, and this for what is outside
    'echo nameserver 127.0.0.1 > /etc/resolv.conf',
    hostsScript(setup.hosts),
    // kubelet and runc know a tree of hierarchies or cgroup2 alone, and the machine has the former
    'umount -n -l /sys/fs/cgroup',
    'mount -n -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup',
    ...CONTROLLERS.flatMap((name) => [
      `mkdir /sys/fs/cgroup/${name}`,
      `mount -n -t cgroup -o ${name === 'systemd' ? 'none,name=systemd' : name} cgroup /sys/fs/cgroup/${name}`,
      `mkdir -p /sys/fs/cgroup/${name}${setup.cgroup}`,
    ]),
    'mkdir /sys/fs/cgroup/unified',
    'mount -n -t cgroup2 cgroup2 /sys/fs/cgroup/unified',
    ...['cpus', 'mems'].map((name) => `cat /sys/fs/cgroup/cpuset/cpuset.${name} > /sys/fs/cgroup/cpuset${setup.cgroup}/cpuset.${name}`),
    ...Object.entries(MACHINE_SYSCTLS).flatMap(([name, value]) => {
      const file = `${folder}/sysctl/${name.replaceAll('/', '.')}`
      return [`echo ${value} > ${file}`, `mount -n --bind ${file} /proc/sys/${name}`]
    }),
    // pods may ask for mounts that spread, within the node
    'mount -n --make-rshared /',
  ].join('\n')
}

/** Writes the names that a node knows by itself, and "localhost". */
export function hostsScript(hosts: Readonly<Record<string, string>>): string {
  const lines = Object.entries({ localhost: '127.0.0.1', ...hosts }).map(([name, address]) => `${address} ${name}`)
  return `printf '%s\\n' ${lines.map(quote).join(' ')} > /etc/hosts`
}

/** /etc/containerd/config.toml of Debian 12's containerd. */
export function containerdConfig(folder: string): string {
  return `version = 2
root = "${join(folder, 'containerd')}"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE_IMAGE}"
  disable_apparmor = true
  # machines that are containers themselves may not lower it
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`
}

/** What kubelet runs in every pod; the name is upstream's, the image our own. */
export const PAUSE_IMAGE = 'registry.k8s.io/pause:3.10.1'

export interface KubeletOptions extends NodeSetup {
  readonly clusterDns: readonly string[]
  /** of clients that may ask it */
  readonly authority: string
}

/** KubeletConfiguration as JSON, which is YAML too. */
export function kubeletConfig(options: KubeletOptions): string {
  return JSON.stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: options.authority } },
    authorization: { mode: 'Webhook' },
    clusterDNS: options.clusterDns,
    clusterDomain: 'cluster.local',
    resolvConf: '/etc/resolv.conf',
    containerRuntimeEndpoint: 'unix:///run/containerd/containerd.sock',
    cgroupDriver: 'cgroupfs',
    cgroupRoot: options.cgroup,
    failCgroupV1: false,
    failSwapOn: false,
    enforceNodeAllocatable: [],
    // a full disk is the machine's affair, not the tests'
    evictionHard: { 'imagefs.available': '0%', 'nodefs.available': '0%', 'nodefs.inodesFree': '0%', 'memory.available': '10Mi' },
    imageGCHighThresholdPercent: 100,
    podLogsDir: join(options.folder, 'pod-logs'),
    fileCheckFrequency: '0s',
    nodeStatusUpdateFrequency: '3s',
    nodeLeaseDurationSeconds: 12,
    // pods of a test end at once
    shutdownGracePeriod: '0s',
  })
}
