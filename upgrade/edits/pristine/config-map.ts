// SPDX-License-Identifier: Apache-2.0
/** The config map of an older manifest, with the list of CNI plugins. Layer: upgrade (pure). */
import { NAMESPACE, TYPHA, type Template } from './template.ts'

export function configMap(template: Template): object {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: template.configMap, namespace: NAMESPACE }, data: dataOf(template) }
}

function dataOf(template: Template): object {
  const { variant, isNetworking, hasTypha } = template
  return {
    typha_service_name: hasTypha ? TYPHA : 'none',
    ...(isNetworking ? { netplane_backend: variant === 'vxlan' ? 'vxlan' : 'bird' } : {}),
    veth_mtu: mtuOf(template),
    cni_network_config: networkConfig(template),
    ...(variant === 'bpf' ? { kubernetes_service_host: '', kubernetes_service_port: '' } : {}),
    ...(variant === 'canal' ? { canal_iface: '', masquerade: 'true', 'net-conf.json': FLANNEL } : {}),
  }
}

const FLANNEL = JSON.stringify({ Network: '10.244.0.0/16', Backend: { Type: 'vxlan' } })

const MTU_BEFORE: Partial<Readonly<Record<Template['variant'], string>>> = { vxlan: '1410', canal: '1450' }

function mtuOf({ variant, has }: Template): string {
  return has('foundMtu') ? '0' : (MTU_BEFORE[variant] ?? '1440')
}

/** Placeholders are filled in on each node; that of the MTU is no text. */
function networkConfig({ isNetworking, has }: Template): string {
  const plugin = {
    type: 'netplane',
    log_level: 'info',
    log_file_path: '/var/log/netplane/cni/cni.log',
    datastore_type: 'kubernetes',
    nodename: '__KUBERNETES_NODE_NAME__',
    mtu: '__CNI_MTU__',
    ipam: isNetworking ? { type: 'netplane-ipam' } : { type: 'host-local', subnet: 'usePodCidr' },
    policy: { type: 'k8s' },
    kubernetes: { kubeconfig: '__KUBECONFIG_FILEPATH__' },
  }
  const list = {
    name: 'k8s-pod-network',
    cniVersion: '0.3.1',
    plugins: [
      plugin,
      { type: 'portmap', snat: true, capabilities: { portMappings: true } },
      ...(has('noBandwidth') ? [] : [{ type: 'bandwidth', capabilities: { bandwidth: true } }]),
    ],
  }
  return JSON.stringify(list, undefined, 2).replace('"__CNI_MTU__"', '__CNI_MTU__')
}
