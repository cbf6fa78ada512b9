// SPDX-License-Identifier: Apache-2.0
/** The DaemonSet of the agents. Layer: lib/render (pure). */
import { endpointVariables, labelsOf, NODE, pullSecrets, type RenderInput } from './input.ts'

/** On a node's loopback address alone. */
const HEALTH_HOST = '127.0.0.1'

interface HostFolder {
  readonly name: string
  readonly path: string
  readonly type: 'Directory' | 'DirectoryOrCreate' | 'FileOrCreate'
}

export function nodeDaemonSet(input: RenderInput): object {
  const { namespace, computed } = input
  const labels = labelsOf(NODE)
  const { resources, tolerations, nodeSelector, annotations } = computed.nodePods
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: NODE, namespace, labels },
    spec: {
      selector: { matchLabels: { 'app.kubernetes.io/name': NODE } },
      // programs go on while an agent is replaced
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: computed.maxUnavailable } },
      template: {
        metadata: { labels, ...(annotations === undefined ? {} : { annotations }) },
        spec: {
          serviceAccountName: NODE,
          priorityClassName: 'system-node-critical',
          hostNetwork: true,
          // the name of the API server must not need a service of ours
          dnsPolicy: 'Default',
          // variables of services could be taken for settings
          enableServiceLinks: false,
          terminationGracePeriodSeconds: 10,
          nodeSelector: { 'kubernetes.io/os': 'linux', ...nodeSelector },
          // a node is not ready before us
          tolerations: [{ operator: 'Exists' }, ...tolerations],
          ...pullSecrets(input),
          initContainers: [mounts(input)],
          containers: [agent(input, resources ?? { requests: { cpu: '100m', memory: '200Mi' } })],
          volumes: [
            ...hostFolders(input).map(({ name, path, type }) => ({ name, hostPath: { path, type } })),
            { name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '16Mi' } },
          ],
        },
      },
    },
  }
}

function hostFolders({ computed: { confDir, binDir } }: RenderInput): readonly HostFolder[] {
  return [
    { name: 'bpf', path: '/sys/fs/bpf', type: 'Directory' },
    { name: 'run', path: '/run/netplane', type: 'DirectoryOrCreate' },
    { name: 'keep', path: '/var/lib/netplane', type: 'DirectoryOrCreate' },
    { name: 'netns', path: '/run/netns', type: 'DirectoryOrCreate' },
    { name: 'proc', path: '/proc', type: 'Directory' },
    { name: 'cgroup', path: '/sys/fs/cgroup', type: 'Directory' },
    { name: 'xtables-lock', path: '/run/xtables.lock', type: 'FileOrCreate' },
    { name: 'cni-conf', path: confDir, type: 'DirectoryOrCreate' },
    { name: 'cni-bin', path: binDir, type: 'DirectoryOrCreate' },
    { name: 'logs', path: '/var/log/pods', type: 'DirectoryOrCreate' },
  ]
}

/** File systems that the agent needs, mounted for the node. */
function mounts({ image }: RenderInput): object {
  return {
    name: 'mounts',
    image,
    imagePullPolicy: 'IfNotPresent',
    command: ['netplane-mounts'],
    // what is mounted in it is to be seen on the node
    securityContext: { privileged: true },
    volumeMounts: [
      { name: 'bpf', mountPath: '/sys/fs/bpf', mountPropagation: 'Bidirectional' },
      { name: 'run', mountPath: '/run/netplane', mountPropagation: 'Bidirectional' },
      { name: 'proc', mountPath: '/host/proc', readOnly: true },
      { name: 'cgroup', mountPath: '/host/cgroup', mountPropagation: 'HostToContainer' },
    ],
  }
}

function agent(input: RenderInput, resources: object): object {
  const { image, computed } = input
  return {
    name: NODE,
    image,
    imagePullPolicy: 'IfNotPresent',
    command: ['netplane-start'],
    args: [
      '--node=$(NODE_NAME)',
      ...(computed.cni === 'None' ? [] : ['--cni-conf-dir=/etc/cni/net.d', '--cni-bin-dir=/opt/cni/bin']),
      ...(computed.cni === 'Chained' ? ['--cni-chained'] : []),
      `--daemon-set=$(NAMESPACE)/${NODE}`,
    ],
    env: environment(input),
    securityContext: {
      allowPrivilegeEscalation: true,
      readOnlyRootFilesystem: true,
      // SYS_ADMIN: programs and maps (also before Linux 5.8), network namespaces of pods, /proc/sys; NET_RAW: iptables
      capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'NET_RAW', 'SYS_ADMIN'] },
      seccompProfile: { type: 'Unconfined' },
      appArmorProfile: { type: 'Unconfined' },
      // enforcing SELinux lets containers write nothing of the node but as this type; without SELinux it says nothing
      seLinuxOptions: { type: 'spc_t', level: 's0' },
    },
    livenessProbe: {
      httpGet: healthOf(input, '/liveness'),
      initialDelaySeconds: 10,
      periodSeconds: 10,
      failureThreshold: 6,
      timeoutSeconds: 5,
    },
    readinessProbe: { httpGet: healthOf(input, '/readiness'), periodSeconds: 5, timeoutSeconds: 5 },
    resources,
    volumeMounts: [
      { name: 'bpf', mountPath: '/sys/fs/bpf', mountPropagation: 'HostToContainer' },
      { name: 'run', mountPath: '/run/netplane', mountPropagation: 'HostToContainer' },
      { name: 'keep', mountPath: '/var/lib/netplane' },
      { name: 'netns', mountPath: '/run/netns', mountPropagation: 'HostToContainer' },
      { name: 'xtables-lock', mountPath: '/run/xtables.lock' },
      { name: 'cni-conf', mountPath: '/etc/cni/net.d' },
      { name: 'cni-bin', mountPath: '/opt/cni/bin' },
      // the agent's own log, for support bundles
      { name: 'logs', mountPath: '/var/log/pods', readOnly: true },
      { name: 'tmp', mountPath: '/tmp' },
    ],
  }
}

function environment({ endpoint, computed }: RenderInput): readonly object[] {
  const own = (name: string, fieldPath: string): object => ({ name, valueFrom: { fieldRef: { fieldPath } } })
  return [
    own('NODE_NAME', 'spec.nodeName'),
    own('NAMESPACE', 'metadata.namespace'),
    ...endpointVariables(endpoint),
    { name: 'FELIX_CGROUPV2PATH', value: '/run/netplane/cgroup' },
    // where the probes ask, whatever resources say
    { name: 'FELIX_HEALTHENABLED', value: 'true' },
    { name: 'FELIX_HEALTHHOST', value: HEALTH_HOST },
    { name: 'FELIX_HEALTHPORT', value: String(computed.platform.healthPort) },
  ]
}

function healthOf({ computed }: RenderInput, path: string): object {
  return { host: HEALTH_HOST, path, port: computed.platform.healthPort }
}
