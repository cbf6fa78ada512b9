// SPDX-License-Identifier: Apache-2.0
/** The DaemonSet that takes everything of ours off the nodes. Layer: lib/render (pure). */
import { asApiObject, type ApiObject } from '../api/resource.ts'
import { hostVolumes, labelsOf, pullSecrets, type RenderInput } from './input.ts'
import { securityConstraints } from './security-constraints.ts'

/** A pod of it is ready once its node has nothing of ours any more. */
export const CLEANUP = 'netplane-cleanup'

/** While an agent still runs it fails, and is tried again. */
const COMMAND = [
  'netplane-agent --cleanup --cgroup /run/netplane/cgroup',
  '{ ! mountpoint -q /run/netplane/cgroup || umount /run/netplane/cgroup; }',
].join(' && ')

/** An account without rights, and the DaemonSet. */
export function renderCleanup(input: Omit<RenderInput, 'endpoint'>): readonly ApiObject[] {
  const { namespace, computed } = input
  const metadata = { name: CLEANUP, namespace, labels: labelsOf(CLEANUP) }
  const objects = [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    ...securityConstraints(computed, { name: CLEANUP, namespace, capabilities: 'privileged' }),
    daemonSet(input, metadata),
  ]
  return objects.map(asApiObject)
}

function daemonSet(input: Omit<RenderInput, 'endpoint'>, metadata: { readonly labels: object }): object {
  const { image, computed } = input
  const { labels } = metadata
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata,
    spec: {
      selector: { matchLabels: { 'app.kubernetes.io/name': CLEANUP } },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '100%' } },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: CLEANUP,
          automountServiceAccountToken: false,
          priorityClassName: 'system-node-critical',
          hostNetwork: true,
          enableServiceLinks: false,
          terminationGracePeriodSeconds: 1,
          nodeSelector: { 'kubernetes.io/os': 'linux', ...computed.nodePods.nodeSelector },
          tolerations: [{ operator: 'Exists' }],
          ...pullSecrets(input),
          initContainers: [cleaner(image)],
          containers: [rest(image)],
          volumes: hostVolumes(computed, ['bpf', 'run', 'keep', 'xtables-lock', 'cni-conf', 'cni-bin']),
        },
      },
    },
  }
}

function cleaner(image: string): object {
  return {
    name: 'cleanup',
    image,
    imagePullPolicy: 'IfNotPresent',
    command: ['sh', '-ec', COMMAND],
    // what is unmounted in it is to be gone from the node
    securityContext: { privileged: true },
    // why it failed is in the pod's status
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [
      { name: 'bpf', mountPath: '/sys/fs/bpf', mountPropagation: 'Bidirectional' },
      { name: 'run', mountPath: '/run/netplane', mountPropagation: 'Bidirectional' },
      { name: 'keep', mountPath: '/var/lib/netplane' },
      { name: 'xtables-lock', mountPath: '/run/xtables.lock' },
      { name: 'cni-conf', mountPath: '/etc/cni/net.d' },
      { name: 'cni-bin', mountPath: '/opt/cni/bin' },
    ],
  }
}

function rest(image: string): object {
  return {
    name: 'done',
    image,
    imagePullPolicy: 'IfNotPresent',
    command: ['sleep', 'infinity'],
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    resources: { requests: { cpu: '1m', memory: '4Mi' } },
  }
}
