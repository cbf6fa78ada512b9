// SPDX-License-Identifier: Apache-2.0
/** Edits of the DaemonSet of older agents. Layer: upgrade (pure). */
import { carried, kept, left, refused } from '../edit.ts'
import { FLANNEL_CONTAINER } from '../pristine/template.ts'
import { rule, unlessGone, variables, type EditRule } from '../rule.ts'
import { nodeAddress, secondFamily } from './addresses.ts'
import { felixVariable } from './felix.ts'
import { backend, bgpSetting, endpoint, mtu } from './network.ts'
import { metadataRules, podRules, rollRules } from './pods.ts'

const FLANNEL = unlessGone(left('flannel is in a DaemonSet of its own'), () => kept("flannel's settings, which stay as they are"))

const NO_CONTAINER = left('this version does not run it')

const VARIABLES: readonly EditRule[] = [
  rule(variables('NETPLANE_IPV4POOL_*', 'NETPLANE_IPV6POOL_*', 'NO_DEFAULT_POOLS'), kept('the IPPools: it acts while there is none')),
  rule(variables('IP', 'IP_AUTODETECTION_METHOD'), nodeAddress('v4')),
  rule(variables('IP6'), secondFamily),
  rule(variables('IP6_AUTODETECTION_METHOD'), nodeAddress('v6')),
  rule(variables('FELIX_TYPHA*', 'TYPHA_*'), left('there is no typha: agents ask the API server')),
  rule(variables('FELIX_*'), felixVariable),
  rule(variables('NETPLANE_NETWORKING_BACKEND'), backend),
  rule(variables('CLUSTER_SERVICE_HOST', 'KUBERNETES_SERVICE_HOST'), endpoint('host')),
  rule(variables('CLUSTER_SERVICE_PORT', 'KUBERNETES_SERVICE_PORT'), endpoint('port')),
  rule(
    variables('DATASTORE_TYPE', 'ETCD_*'),
    refused('the variant has its resources in the API server', 'Put it back, or upgrade as the variant for etcd.'),
  ),
  rule(
    variables('NODENAME', 'NETPLANE_K8S_NODE_REF'),
    refused('an agent is called as its Node', 'Put it back; addresses go by names of Nodes.'),
  ),
  rule(variables('AS', 'NETPLANE_ROUTER_ID', 'NETPLANE_ADVERTISE_*'), bgpSetting),
  rule(
    variables(
      'WAIT_FOR_DATASTORE',
      'CLUSTER_TYPE',
      'USE_POD_CIDR',
      'NETPLANE_MANAGE_CNI',
      'NETPLANE_DISABLE_FILE_LOGGING',
      'BGP_LOGSEVERITYSCREEN',
    ),
    left('agents of this version do not read it'),
  ),
]

const BEFORE_IT: readonly EditRule[] = [
  rule('pod.initContainers[install-cni].env[CNI_MTU]', mtu),
  rule(
    'pod.initContainers[install-cni].env[CNI_NET_DIR]',
    unlessGone(NO_CONTAINER, ({ mine }) => carried('installation', ['cni', 'confDir'], mine)),
  ),
  rule(
    'pod.initContainers[install-cni].env[CNI_CONF_NAME]',
    refused('the list of plugins is called 10-netplane.conflist', 'Put the name back; another plugin that calls ours reads that file.'),
  ),
  rule(
    'pod.initContainers[install-cni].env[CNI_NETWORK_CONFIG]',
    refused('its list of plugins is not that of the config map', 'Write the list into the config map.'),
  ),
  rule(
    ['upgrade-ipam', 'install-cni', 'flexvol-driver', 'mount-bpffs', 'ebpf-bootstrap'].map((name) => `pod.initContainers[${name}]*`),
    NO_CONTAINER,
  ),
  rule('pod.initContainers[*]*', refused('there is no place for containers of others', 'Run it by a DaemonSet of its own.')),
]

const FOLDERS: readonly EditRule[] = [
  rule('pod.volumes[cni-bin-dir].hostPath.path', ({ mine }) => carried('installation', ['cni', 'binDir'], mine)),
  rule('pod.volumes[cni-net-dir].hostPath.path', ({ mine }) => carried('installation', ['cni', 'confDir'], mine)),
  rule(
    ['lib-modules', 'cni-log-dir', 'policysync', 'flexvol-driver-host', 'host-local-net-dir', 'sys-fs'].map(
      (name) => `pod.volumes[${name}]*`,
    ),
    left('agents of this version do not have that folder'),
  ),
  rule('pod.volumes[*].hostPath.type', left('agents of this version make the folders that they need')),
  rule(
    'pod.volumes[*]*',
    refused('agents have folders of this version alone', 'Take the volume away, or put its folder back where it was.'),
  ),
  rule(
    'container.volumeMounts[*]*',
    refused('agents have folders of this version alone', 'Take the mount away, or put it back as it was.'),
  ),
]

export const AGENT_RULES: readonly EditRule[] = [
  rule([`pod.containers[${FLANNEL_CONTAINER}]*`, 'pod.volumes[flannel-cfg]*'], FLANNEL),
  ...VARIABLES,
  ...BEFORE_IT,
  ...FOLDERS,
  ...podRules('nodePods'),
  ...rollRules,
  rule('container.envFrom[*]*', refused('what it says is not in the DaemonSet', 'Write its variables into the DaemonSet.')),
  rule('pod.containers[*]', refused('there is no place for containers of others', 'Run it by a DaemonSet of its own.')),
  ...metadataRules,
]
