// SPDX-License-Identifier: Apache-2.0
/** The DaemonSet of an older manifest: the agent, what runs before it, and flannel beside it in one variant.
 * Layer: upgrade (pure). */
import {
  endpointOf,
  endpointVariables,
  FLANNEL_CONTAINER,
  fromConfigMap,
  imageOf,
  labelled,
  NAMESPACE,
  nodeName,
  said,
  type Template,
} from './template.ts'
import { agentMounts, volumesOf } from './volumes.ts'

export const AGENT = 'netplane-node'

const PRIVILEGED = { privileged: true }

export function nodeDaemonSet(template: Template): object {
  const { node, variant, has } = template
  const labels = labelled(node)
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: node, namespace: NAMESPACE, labels },
    spec: {
      selector: { matchLabels: labels },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1 } },
      template: {
        metadata: { labels },
        spec: {
          nodeSelector: { 'kubernetes.io/os': 'linux' },
          hostNetwork: true,
          tolerations: [
            { effect: 'NoSchedule', operator: 'Exists' },
            { key: 'CriticalAddonsOnly', operator: 'Exists' },
            { effect: 'NoExecute', operator: 'Exists' },
          ],
          serviceAccountName: node,
          ...(has('seccompProfile') ? { securityContext: { seccompProfile: { type: 'RuntimeDefault' } } } : {}),
          terminationGracePeriodSeconds: 0,
          priorityClassName: 'system-node-critical',
          initContainers: initContainers(template),
          containers: [agent(template), ...(variant === 'canal' ? [flannel(template)] : [])],
          volumes: volumesOf(template),
        },
      },
    },
  }
}

function initContainers(template: Template): readonly object[] {
  const { isNetworking, has } = template
  return [
    ...(isNetworking ? [upgradeIpam(template)] : []),
    installCni(template),
    ...(has('noFlexVolume') ? [] : [flexVolume(template)]),
    ...(has('mountBpffs') ? [mountBpffs(template)] : []),
  ]
}

function upgradeIpam(template: Template): object {
  return {
    name: 'upgrade-ipam',
    image: imageOf(template, 'cni'),
    command: ['/opt/cni/bin/netplane-ipam', '-upgrade'],
    ...endpointOf(template),
    env: [nodeName('KUBERNETES_NODE_NAME'), fromConfigMap(template, 'NETPLANE_NETWORKING_BACKEND', 'netplane_backend')],
    securityContext: PRIVILEGED,
    volumeMounts: [
      { name: 'host-local-net-dir', mountPath: '/var/lib/cni/networks' },
      { name: 'cni-bin-dir', mountPath: '/host/opt/cni/bin' },
    ],
  }
}

function installCni(template: Template): object {
  return {
    name: 'install-cni',
    image: imageOf(template, 'cni'),
    command: ['/opt/cni/bin/install'],
    ...endpointOf(template),
    env: [
      ...said({ CNI_CONF_NAME: template.variant === 'canal' ? '10-canal.conflist' : '10-netplane.conflist', SLEEP: 'false' }),
      fromConfigMap(template, 'CNI_NETWORK_CONFIG', 'cni_network_config'),
      nodeName('KUBERNETES_NODE_NAME'),
      fromConfigMap(template, 'CNI_MTU', 'veth_mtu'),
      ...endpointVariables(template),
    ],
    securityContext: PRIVILEGED,
    volumeMounts: [
      { name: 'cni-bin-dir', mountPath: '/host/opt/cni/bin' },
      { name: 'cni-net-dir', mountPath: '/host/etc/cni/net.d' },
    ],
  }
}

function flexVolume(template: Template): object {
  return {
    name: 'flexvol-driver',
    image: imageOf(template, 'pod2daemon-flexvol'),
    securityContext: PRIVILEGED,
    volumeMounts: [{ name: 'flexvol-driver-host', mountPath: '/host/driver' }],
  }
}

function mountBpffs(template: Template): object {
  return {
    name: template.has('ebpfBootstrap') ? 'ebpf-bootstrap' : 'mount-bpffs',
    image: imageOf(template, 'node'),
    command: ['netplane-node', '-init', '-best-effort'],
    securityContext: PRIVILEGED,
    volumeMounts: [
      { name: 'sys-fs', mountPath: '/sys/fs', mountPropagation: 'Bidirectional' },
      { name: 'var-run-netplane', mountPath: '/var/run/netplane', mountPropagation: 'Bidirectional' },
      { name: 'nodeproc', mountPath: '/nodeproc', readOnly: true },
    ],
  }
}

function agent(template: Template): object {
  const isBird = template.isNetworking && template.variant !== 'vxlan'
  const probe = (...flags: readonly string[]): object => ({ command: ['/bin/netplane-node', ...flags] })
  return {
    name: AGENT,
    image: imageOf(template, 'node'),
    ...endpointOf(template),
    env: agentEnvironment(template),
    securityContext: PRIVILEGED,
    resources: { requests: { cpu: '250m' } },
    ...(template.has('shutdownHook') ? { lifecycle: { preStop: { exec: probe('-shutdown') } } } : {}),
    livenessProbe: {
      exec: probe('-felix-live', ...(isBird ? ['-bird-live'] : [])),
      periodSeconds: 10,
      initialDelaySeconds: 10,
      failureThreshold: 6,
      timeoutSeconds: 10,
    },
    readinessProbe: { exec: probe('-felix-ready', ...(isBird ? ['-bird-ready'] : [])), periodSeconds: 10, timeoutSeconds: 10 },
    volumeMounts: agentMounts(template),
  }
}

function agentEnvironment(template: Template): readonly object[] {
  return [
    ...said({
      DATASTORE_TYPE: 'kubernetes',
      WAIT_FOR_DATASTORE: 'true',
      NETPLANE_DISABLE_FILE_LOGGING: 'true',
      FELIX_DEFAULTENDPOINTTOHOSTACTION: 'ACCEPT',
      FELIX_IPV6SUPPORT: 'false',
      FELIX_HEALTHENABLED: 'true',
    }),
    nodeName('NODENAME'),
    ...endpointVariables(template),
    ...(template.hasTypha ? [fromConfigMap(template, 'FELIX_TYPHAK8SSERVICENAME', 'typha_service_name')] : []),
    ...(template.isNetworking ? networkingEnvironment(template) : policyEnvironment(template)),
  ]
}

function networkingEnvironment(template: Template): readonly object[] {
  const isVxlan = template.variant === 'vxlan'
  return [
    fromConfigMap(template, 'NETPLANE_NETWORKING_BACKEND', 'netplane_backend'),
    ...said({
      CLUSTER_TYPE: isVxlan ? 'k8s' : 'k8s,bgp',
      IP: 'autodetect',
      NETPLANE_IPV4POOL_IPIP: isVxlan ? 'Never' : 'Always',
      NETPLANE_IPV4POOL_VXLAN: isVxlan ? 'Always' : 'Never',
      ...(template.variant === 'bpf' ? { FELIX_BPFENABLED: 'true' } : {}),
    }),
    ...['FELIX_IPINIPMTU', 'FELIX_VXLANMTU', 'FELIX_WIREGUARDMTU'].map((name) => fromConfigMap(template, name, 'veth_mtu')),
  ]
}

function policyEnvironment({ variant }: Template): readonly object[] {
  const isCanal = variant === 'canal'
  return said({
    NETPLANE_NETWORKING_BACKEND: 'none',
    CLUSTER_TYPE: isCanal ? 'k8s,canal' : 'k8s',
    USE_POD_CIDR: 'true',
    ...(isCanal ? { IP: '', FELIX_IPTABLESREFRESHINTERVAL: '60' } : { NETPLANE_MANAGE_CNI: 'false' }),
  })
}

function flannel(template: Template): object {
  return {
    name: FLANNEL_CONTAINER,
    image: 'flannel/flannel:v0.24.4',
    command: ['/opt/bin/flanneld', '--ip-masq', '--kube-subnet-mgr'],
    ...endpointOf(template),
    env: [
      { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
      fromConfigMap(template, 'FLANNELD_IFACE', 'canal_iface'),
      fromConfigMap(template, 'FLANNELD_IP_MASQ', 'masquerade'),
    ],
    securityContext: PRIVILEGED,
    volumeMounts: [
      { name: 'xtables-lock', mountPath: '/run/xtables.lock' },
      { name: 'flannel-cfg', mountPath: '/etc/kube-flannel/' },
    ],
  }
}
