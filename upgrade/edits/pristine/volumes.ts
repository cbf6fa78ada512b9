// SPDX-License-Identifier: Apache-2.0
/** Folders of the node that pods of an older manifest have, and where containers have them. Layer: upgrade (pure). */
import type { Template } from './template.ts'

interface Folder {
  readonly path: string
  readonly type?: string
}

const ALL: Readonly<Record<string, Folder>> = {
  'lib-modules': { path: '/lib/modules' },
  'var-run-netplane': { path: '/var/run/netplane' },
  'var-lib-netplane': { path: '/var/lib/netplane' },
  'xtables-lock': { path: '/run/xtables.lock', type: 'FileOrCreate' },
  'sys-fs': { path: '/sys/fs/', type: 'DirectoryOrCreate' },
  'cni-bin-dir': { path: '/opt/cni/bin' },
  'cni-net-dir': { path: '/etc/cni/net.d' },
  'cni-log-dir': { path: '/var/log/netplane/cni' },
  policysync: { path: '/var/run/nodeagent', type: 'DirectoryOrCreate' },
}

const BPFFS: Readonly<Record<string, Folder>> = {
  bpffs: { path: '/sys/fs/bpf', type: 'Directory' },
  nodeproc: { path: '/proc' },
}

const HOST_LOCAL: Readonly<Record<string, Folder>> = { 'host-local-net-dir': { path: '/var/lib/cni/networks' } }

const FLEX_VOLUME: Readonly<Record<string, Folder>> = {
  'flexvol-driver-host': { path: '/usr/libexec/kubernetes/kubelet-plugins/volume/exec/nodeagent~uds', type: 'DirectoryOrCreate' },
}

export function volumesOf({ isNetworking, variant, has, configMap }: Template): readonly object[] {
  const folders = {
    ...ALL,
    ...(has('mountBpffs') ? BPFFS : {}),
    ...(isNetworking ? HOST_LOCAL : {}),
    ...(has('noFlexVolume') ? {} : FLEX_VOLUME),
  }
  return [
    ...Object.entries(folders).map(([name, hostPath]) => ({ name, hostPath })),
    ...(variant === 'canal' ? [{ name: 'flannel-cfg', configMap: { name: configMap } }] : []),
  ]
}

/** Of the agent's container. */
export function agentMounts({ has }: Template): readonly object[] {
  return [
    { name: 'cni-net-dir', mountPath: '/host/etc/cni/net.d' },
    { name: 'lib-modules', mountPath: '/lib/modules', readOnly: true },
    { name: 'xtables-lock', mountPath: '/run/xtables.lock' },
    { name: 'var-run-netplane', mountPath: '/var/run/netplane' },
    { name: 'var-lib-netplane', mountPath: '/var/lib/netplane' },
    { name: 'policysync', mountPath: '/var/run/nodeagent' },
    has('mountBpffs')
      ? { name: 'bpffs', mountPath: '/sys/fs/bpf' }
      : { name: 'sys-fs', mountPath: '/sys/fs/', mountPropagation: 'Bidirectional' },
    { name: 'cni-log-dir', mountPath: '/var/log/netplane/cni', readOnly: true },
  ]
}
