// SPDX-License-Identifier: Apache-2.0
/** An installation with flannel beside the agent, as its manifest had it, with edits. Layer: test. */
import { asApiObject } from '#lib/api/resource.ts'

const IPTABLES_LOCK = '/run/xtables.lock'

export const CANAL_CONFIG = asApiObject({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'canal-config', namespace: 'kube-system' },
  data: { canal_iface: 'eth1', masquerade: 'true', 'net-conf.json': '{"Network": "10.244.0.0/16", "Backend": {"Type": "vxlan"}}' },
})

const fromConfig = (name: string, key: string): object => ({ name, valueFrom: { configMapKeyRef: { name: 'canal-config', key } } })

const FLANNEL_CONTAINER = {
  name: 'kube-flannel',
  image: 'registry.example.com/flannel:v0.24.4',
  command: ['/opt/bin/flanneld', '--ip-masq', '--kube-subnet-mgr'],
  args: ['--healthz-port=8081', '--iface-regex', 'eth.*'],
  ports: [{ name: 'healthz', containerPort: 8081 }],
  livenessProbe: { httpGet: { path: '/healthz', port: 8081 } },
  securityContext: { privileged: true },
  env: [
    { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
    fromConfig('FLANNELD_IFACE', 'canal_iface'),
    fromConfig('FLANNELD_IP_MASQ', 'masquerade'),
  ],
  volumeMounts: [
    { name: 'xtables-lock', mountPath: IPTABLES_LOCK },
    { name: 'flannel-cfg', mountPath: '/etc/kube-flannel/' },
  ],
}

export const CANAL = asApiObject({
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'canal', namespace: 'kube-system', labels: { 'k8s-app': 'canal' } },
  spec: {
    selector: { matchLabels: { 'k8s-app': 'canal' } },
    template: {
      metadata: { labels: { 'k8s-app': 'canal' } },
      spec: {
        serviceAccountName: 'canal',
        hostNetwork: true,
        priorityClassName: 'system-node-critical',
        nodeSelector: { 'kubernetes.io/os': 'linux' },
        tolerations: [{ operator: 'Exists' }],
        initContainers: [{ name: 'install-cni', image: 'registry.example.com/cni:v3.27.5' }],
        containers: [{ name: 'netplane-node', image: 'registry.example.com/node:v3.27.5' }, FLANNEL_CONTAINER],
        volumes: [
          { name: 'lib-modules', hostPath: { path: '/lib/modules', type: '' } },
          { name: 'xtables-lock', hostPath: { path: IPTABLES_LOCK, type: 'FileOrCreate' } },
          { name: 'flannel-cfg', configMap: { name: 'canal-config', defaultMode: 420 } },
        ],
      },
    },
  },
})
