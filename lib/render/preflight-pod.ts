// SPDX-License-Identifier: Apache-2.0
/** The DaemonSet that looks at every node before anything is changed. Layer: lib/render (pure).
 *
 * Its probes have no rights in the cluster, but for one name: they tell by termination messages, an init container a
 * group. */
import { asApiObject, type ApiObject } from '../api/resource.ts'
import { PROBE_GROUPS, type ProbeGroup } from '../preflight/findings.ts'
import { RUN_ANNOTATION } from '../preflight/results.ts'
import { account } from './account.ts'
import type { Computed } from './computed.ts'
import { labelsOf, pullSecrets, writtenFolders, type Endpoint } from './input.ts'
import { securityConstraints } from './security-constraints.ts'

export const PREFLIGHT = 'netplane-preflight'
/** The same for an endpoint alone, beside agents that run. */
export const ENDPOINT_PROOF = 'netplane-endpoint-proof'

export interface PreflightPeer {
  /** of the node */
  readonly name: string
  readonly addresses: readonly string[]
}

export interface PreflightInput {
  readonly namespace: string
  readonly image: string
  readonly computed: Computed
  /** undefined: there is none to be tried */
  readonly endpoint: Endpoint | undefined
  /** of the service default/kubernetes */
  readonly serviceAddresses: readonly string[]
  /** all nodes; empty: how the tunnel's packets pass between them is not asked */
  readonly peers: readonly PreflightPeer[]
  /** of the tunnel between nodes; undefined: the agents' default */
  readonly vxlanPort: number | undefined
  /** another value lets all nodes be looked at again */
  readonly run: string
  /** for so long a node waits for the others' packets; undefined: the probe's default */
  readonly peersTimeoutS?: number
  /** undefined: all */
  readonly groups?: readonly ProbeGroup[]
  /** undefined: {@link PREFLIGHT} */
  readonly name?: string
}

const PEERS_FOLDER = '/etc/netplane-preflight'
const PEERS_FILE = 'peers'
const ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount'
/** of the kubelet: where a container leaves its report */
const TERMINATION_LOG = '/dev/termination-log'
const SYS_FS = '/host/sys/fs'
const NODE_ROOT = '/host/root'

/** The account, the peers, the DaemonSet, in the order in which they are applied. */
export function renderPreflight(input: PreflightInput): readonly ApiObject[] {
  const { namespace, name = PREFLIGHT } = input
  const rules = [{ apiGroups: [''], resources: ['namespaces'], resourceNames: ['kube-system'], verbs: ['get'] }]
  const groups = groupsOf(input)
  const capabilities = [...new Set(groups.flatMap((group) => needsOf(group, input).capabilities))].sort()
  return [
    ...account({ name, namespace, rules, ownRules: [] }),
    ...securityConstraints(input.computed, { name, namespace, capabilities }),
    peersMap(input, name),
    daemonSet(input, name),
  ].map(asApiObject)
}

/** A line a node, as the vxlan group reads it. */
function peersMap({ namespace, peers }: PreflightInput, name: string): object {
  const lines = peers.toSorted((a, b) => (a.name < b.name ? -1 : 1)).map((peer) => `${[peer.name, ...peer.addresses].join(' ')}\n`)
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace, labels: labelsOf(name) },
    data: { [PEERS_FILE]: lines.join('') },
  }
}

function daemonSet(input: PreflightInput, name: string): object {
  const { namespace, image, computed, run } = input
  const labels = labelsOf(name)
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name, namespace, labels },
    spec: {
      selector: { matchLabels: { 'app.kubernetes.io/name': name } },
      // all at once: nodes ask each other
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '100%' } },
      template: {
        metadata: { labels, annotations: { [RUN_ANNOTATION]: run } },
        spec: {
          serviceAccountName: name,
          // of the group that asks alone
          automountServiceAccountToken: false,
          priorityClassName: 'system-node-critical',
          hostNetwork: true,
          dnsPolicy: 'Default',
          enableServiceLinks: false,
          terminationGracePeriodSeconds: 1,
          nodeSelector: { 'kubernetes.io/os': 'linux', ...computed.nodePods.nodeSelector },
          tolerations: [{ operator: 'Exists' }],
          ...pullSecrets(input),
          initContainers: groupsOf(input).map((group) => probe(group, input)),
          containers: [resting(image)],
          volumes: volumesOf(input, name),
        },
      },
    },
  }
}

function groupsOf({ groups = PROBE_GROUPS, endpoint }: PreflightInput): readonly ProbeGroup[] {
  return PROBE_GROUPS.filter((group) => groups.includes(group) && (group !== 'endpoint' || endpoint !== undefined))
}

interface Needs {
  readonly args: readonly string[]
  readonly capabilities: readonly string[]
  readonly mounts: readonly Mount[]
}

interface Mount {
  readonly name: string
  readonly mountPath: string
  readonly readOnly: boolean
  readonly mountPropagation?: 'HostToContainer'
}

const SYS_FS_MOUNT: Mount = { name: 'sys-fs', mountPath: SYS_FS, readOnly: true, mountPropagation: 'HostToContainer' }
/** The whole of it: a folder that cannot be made would keep the pod from starting, and nothing would be told. */
const ROOT_MOUNT = { name: 'node-root', mountPath: NODE_ROOT, mountPropagation: 'HostToContainer' } as const

/** Exactly what the probes of a group need. SYS_ADMIN: programs are loaded, and a network namespace is made to try
 * hooks in. */
function needsOf(group: ProbeGroup, { computed, endpoint, serviceAddresses, peers, vxlanPort, run, peersTimeoutS }: PreflightInput): Needs {
  const node = ['--node-addresses=$(NODE_ADDRESSES)']
  switch (group) {
    case 'kernel':
      return {
        args: [`--sys-fs=${SYS_FS}`, `--node-root=${NODE_ROOT}`, ...writtenFolders(computed).map((path) => `--host-path=${path}`)],
        capabilities: ['NET_ADMIN', 'NET_RAW', 'SYS_ADMIN'],
        mounts: [SYS_FS_MOUNT, { ...ROOT_MOUNT, readOnly: false }],
      }
    case 'devices':
      return {
        args: [...node, `--cni=${computed.cni}`, ...(computed.mtu === undefined ? [] : [`--mtu=${computed.mtu}`])],
        capabilities: [],
        mounts: [],
      }
    case 'others':
      return {
        args: [...node, `--cni=${computed.cni}`, `--cni-conf-dir=${computed.confDir}`, `--node-root=${NODE_ROOT}`, `--sys-fs=${SYS_FS}`],
        capabilities: ['NET_ADMIN', 'NET_RAW', 'SYS_ADMIN'],
        mounts: computed.cni === 'None' ? [SYS_FS_MOUNT] : [SYS_FS_MOUNT, { ...ROOT_MOUNT, readOnly: true }],
      }
    case 'endpoint':
      return {
        args: [
          ...(endpoint === undefined ? [] : [`--endpoint=${endpoint.host}:${endpoint.port}`]),
          ...serviceAddresses.map((address) => `--service-address=${address}`),
        ],
        capabilities: [],
        mounts: [{ name: 'account', mountPath: ACCOUNT_FOLDER, readOnly: true }],
      }
    case 'vxlan':
      return {
        args: [
          ...(vxlanPort === undefined ? [] : [`--vxlan-port=${vxlanPort}`]),
          ...(peers.length === 0 ? [] : ['--node=$(NODE_NAME)', `--peers=${PEERS_FOLDER}/${PEERS_FILE}`, `--run=${run}`]),
          ...(peers.length === 0 || peersTimeoutS === undefined ? [] : [`--peers-timeout=${peersTimeoutS}`]),
        ],
        capabilities: ['NET_RAW'],
        mounts: peers.length === 0 ? [] : [{ name: 'peers', mountPath: PEERS_FOLDER, readOnly: true }],
      }
  }
}

function probe(group: ProbeGroup, input: PreflightInput): object {
  const { args, capabilities, mounts } = needsOf(group, input)
  const own = (name: string, fieldPath: string): object => ({ name, valueFrom: { fieldRef: { fieldPath } } })
  return {
    name: group,
    image: input.image,
    imagePullPolicy: 'IfNotPresent',
    command: ['netplane-agent', 'preflight', `--group=${group}`, `--termination-log=${TERMINATION_LOG}`],
    args,
    env: [own('NODE_NAME', 'spec.nodeName'), own('NODE_ADDRESSES', 'status.hostIPs')],
    terminationMessagePath: TERMINATION_LOG,
    // of a program that cannot start here, which leaves no report
    terminationMessagePolicy: 'FallbackToLogsOnError',
    securityContext: {
      // of those that are to be as the agent
      allowPrivilegeEscalation: capabilities.includes('SYS_ADMIN'),
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'], ...(capabilities.length === 0 ? {} : { add: capabilities }) },
      // as of the agent, of which it is to tell whether it may work here
      ...(group === 'kernel' || group === 'others'
        ? {
            seccompProfile: { type: 'Unconfined' },
            appArmorProfile: { type: 'Unconfined' },
            seLinuxOptions: { type: 'spc_t', level: 's0' },
          }
        : { seccompProfile: { type: 'RuntimeDefault' } }),
    },
    resources: { requests: { cpu: '10m', memory: '60Mi' } },
    volumeMounts: [...mounts, { name: 'tmp', mountPath: '/tmp' }],
  }
}

/** A DaemonSet's pod has to go on, and this one has nothing more to do. */
function resting(image: string): object {
  return {
    name: 'rest',
    image,
    imagePullPolicy: 'IfNotPresent',
    command: ['sleep', 'infinity'],
    securityContext: {
      runAsNonRoot: true,
      runAsUser: 65_532,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    },
    resources: { requests: { cpu: '1m', memory: '2Mi' } },
  }
}

/** Those that a group of this input mounts. */
function volumesOf(input: PreflightInput, name: string): readonly object[] {
  const token = { serviceAccountToken: { path: 'token', expirationSeconds: 3600 } }
  const authority = { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } }
  const all = [
    { name: 'sys-fs', hostPath: { path: '/sys/fs', type: 'Directory' } },
    { name: 'node-root', hostPath: { path: '/', type: 'Directory' } },
    { name: 'account', projected: { sources: [token, authority] } },
    { name: 'peers', configMap: { name } },
    { name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '16Mi' } },
  ]
  const mounted = new Set(groupsOf(input).flatMap((group) => needsOf(group, input).mounts.map((mount) => mount.name)))
  return all.filter((volume) => volume.name === 'tmp' || mounted.has(volume.name))
}
