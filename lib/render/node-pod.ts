// SPDX-License-Identifier: Apache-2.0
/** The DaemonSet of the agents. Layer: lib/render (pure). */
import { endpointVariables, hostVolumes, labelsOf, NODE, pullSecrets, type RenderInput } from './input.ts'

/** There while the agent of the pod has last read that the datastore is open; a folder of the pod itself. */
const DATASTORE_FOLDER = '/run/netplane-datastore'
const DATASTORE_FILE = `${DATASTORE_FOLDER}/ready`

/** In the agent's container, by their volumes. */
const CNI_FOLDERS = { 'cni-conf': '/etc/cni/net.d', 'cni-bin': '/opt/cni/bin' } as const

/** In the agent's container the node's root: a mount of a folder shows the folder of then, when the node has another
 * one at its path already. */
const NODE_ROOT = '/host'

/** On a node's loopback address alone. */
const HEALTH_HOST = '127.0.0.1'

export function nodeDaemonSet(input: RenderInput): object {
  const { namespace, computed, daemonSet = NODE } = input
  const labels = labelsOf(NODE)
  const { resources, tolerations, nodeSelector, annotations } = computed.nodePods
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: daemonSet, namespace, labels },
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
          containers: [agent(input, resources ?? { requests: { cpu: '100m', memory: '200Mi' } }), datastore(input)],
          volumes: [
            ...hostVolumes(computed, ['bpf', 'run', 'keep', 'netns', 'proc', 'cgroup', 'xtables-lock', ...cniVolumes(computed), 'logs']),
            { name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '16Mi' } },
            { name: 'datastore', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
          ],
        },
      },
    },
  }
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
  const { image, computed, daemonSet = NODE } = input
  return {
    name: NODE,
    image,
    imagePullPolicy: 'IfNotPresent',
    command: ['netplane-start'],
    args: ['--node=$(NODE_NAME)', ...pluginFlags(computed), `--daemon-set=$(NAMESPACE)/${daemonSet}`, `--datastore-file=${DATASTORE_FILE}`],
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
      ...cniVolumes(computed).map(mountOf),
      // the agent's own log, for support bundles
      { name: 'logs', mountPath: '/var/log/pods', readOnly: true },
      { name: 'tmp', mountPath: '/tmp' },
      { name: 'datastore', mountPath: DATASTORE_FOLDER },
    ],
  }
}

/** Who gives pods their network. */
function pluginFlags({ cni, confDir, binDir, mtu, hostPorts }: RenderInput['computed']): readonly string[] {
  if (cni === 'None') return ['--cni-none']
  const mounted = [`--cni-conf-dir=${CNI_FOLDERS['cni-conf']}`, `--cni-bin-dir=${CNI_FOLDERS['cni-bin']}`]
  const folders = [...mounted, `--node-root=${NODE_ROOT}`, `--cni-conf-on-node=${confDir}`, `--cni-bin-on-node=${binDir}`]
  if (cni === 'Chained') return [...folders, '--cni-chained']
  const local = cni === 'Local' ? ['--cni-local'] : []
  return [...folders, ...local, ...(mtu === undefined ? [] : [`--cni-mtu=${mtu}`]), ...(hostPorts ? [] : ['--cni-no-host-ports'])]
}

/** Rests, and is ready once the agent beside it has read that the datastore is not locked. That the API server is away
 * changes nothing. */
function datastore({ image }: RenderInput): object {
  return {
    name: 'datastore',
    image,
    imagePullPolicy: 'IfNotPresent',
    command: ['netplane-datastore'],
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65_532,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    },
    // twice: a node that is short of time for once is not locked
    readinessProbe: { exec: { command: ['netplane-datastore', DATASTORE_FILE] }, periodSeconds: 5, timeoutSeconds: 5, failureThreshold: 2 },
    resources: { requests: { cpu: '1m', memory: '1Mi' } },
    volumeMounts: [{ name: 'datastore', mountPath: DATASTORE_FOLDER, readOnly: true }],
  }
}

/** None where no network configuration is ours: the other plugin's folders are not touched. */
function cniVolumes({ cni }: RenderInput['computed']): readonly CniVolume[] {
  return cni === 'None' ? [] : ['cni-conf', 'cni-bin', 'node-root']
}

type CniVolume = keyof typeof CNI_FOLDERS | 'node-root'

function mountOf(name: CniVolume): object {
  if (name === 'node-root') return { name, mountPath: NODE_ROOT, mountPropagation: 'HostToContainer' }
  return { name, mountPath: CNI_FOLDERS[name] }
}

function environment({ endpoint, computed, settings = {} }: RenderInput): readonly object[] {
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
    ...Object.entries(settings).map(([field, value]) => ({ name: `FELIX_${field.toUpperCase()}`, value })),
  ]
}

function healthOf({ computed }: RenderInput, path: string): object {
  return { host: HEALTH_HOST, path, port: computed.platform.healthPort }
}
