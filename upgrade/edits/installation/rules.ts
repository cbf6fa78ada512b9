// SPDX-License-Identifier: Apache-2.0
/** Fields that an Installation of older versions has, and where they are now. Layer: upgrade (pure). */
import { objectsIn, textOf } from '#lib/base/object.ts'
import { carried, kept, left, refused, type EditOutcome } from '../edit.ts'
import { rule, type Decide, type EditRule } from '../rule.ts'
import { nodeAddress } from '../rules/addresses.ts'
import { mtu } from '../rules/network.ts'

/** Without the step `spec`. */
const same: Decide = ({ steps, mine }) => carried('installation', steps.slice(1), mine)

function moved(...path: readonly string[]): Decide {
  return ({ mine }) => carried('installation', path, mine)
}

/** By what a field says. A word that is not among them is refused. */
function byWord(outcomes: Readonly<Record<string, EditOutcome>>): Decide {
  return ({ mine }) => {
    const word = textOf(mine)
    const outcome = Object.hasOwn(outcomes, word) ? outcomes[word] : undefined
    return (
      outcome ??
      refused(
        'this version has no such value',
        `Set it to ${Object.keys(outcomes)
          .filter((name) => name !== '')
          .join(' or ')}, or take it away.`,
      )
    )
  }
}

const NO_TYPHA = left('there is no typha: agents ask the API server')
const NO_CSI = left('there are no drivers for volumes of pods')
const TAKE_AWAY = 'Take it away.'

function provider(name: string): EditOutcome {
  return carried('installation', ['provider'], name)
}

const PROVIDERS: Readonly<Record<string, EditOutcome>> = {
  '': left('the operator finds out the platform'),
  Kind: provider('Generic'),
  EKS: provider('EKS'),
  AKS: provider('AKS'),
  OpenShift: provider('OpenShift'),
  DockerEnterprise: provider('MKE'),
  RKE2: provider('RKE2'),
}

const CNI_TYPES: Readonly<Record<string, EditOutcome>> = {
  Netplane: carried('installation', ['cni', 'type'], 'Netplane'),
  AmazonVPC: carried('installation', ['cni', 'type'], 'Chained'),
  AzureVNET: carried('installation', ['cni', 'type'], 'Chained'),
  Chained: carried('installation', ['cni', 'type'], 'Chained'),
  None: carried('installation', ['cni', 'type'], 'None'),
}

function dataplane(name: string): EditOutcome {
  return carried('installation', ['netplaneNetwork', 'linuxDataplane'], name)
}

/** "registry.example.com/team/": host and path are two fields now. */
const registry: Decide = ({ mine }) => {
  const [host = '', ...path] = textOf(mine).replace(/\/$/, '').split('/')
  return carried('installation', [], { registry: host, ...(path.length === 0 ? {} : { imagePath: path.join('/') }) })
}

const COMPONENTS: Readonly<Record<string, string>> = { Node: 'nodePods', KubeControllers: 'controllerPods' }

const componentResources: Decide = ({ mine }) => {
  const pods = objectsIn(mine).flatMap(({ componentName, resourceRequirements }) => {
    const name = COMPONENTS[textOf(componentName)]
    return name === undefined ? [] : [[name, { resources: resourceRequirements }] as const]
  })
  return pods.length === 0 ? NO_TYPHA : carried('installation', [], Object.fromEntries(pods))
}

/** Of a DaemonSet or Deployment of older versions. */
function overrides(field: string, pods: string, container: string): readonly EditRule[] {
  const template = `${field}.spec.template`
  return [
    rule(`${template}.metadata.annotations`, moved(pods, 'annotations')),
    rule(`${template}.spec.containers[${container}].resources`, moved(pods, 'resources')),
    rule(`${template}.spec.initContainers[*]*`, left('this version does not run it')),
    rule(`${template}.spec.tolerations`, moved(pods, 'tolerations')),
    rule(`${template}.spec.nodeSelector`, moved(pods, 'nodeSelector')),
  ]
}

/** Older agents served them on every address of the node. */
const metrics: Decide = ({ mine }) =>
  carried('felix', [], { prometheusMetricsEnabled: true, prometheusMetricsHost: '0.0.0.0', prometheusMetricsPort: mine })

export const INSTALLATION_RULES: readonly EditRule[] = [
  rule(['variant', 'imagePath', 'imagePullSecrets', 'cni.binDir', 'cni.confDir', 'nodePods', 'controllerPods', 'provider'], same),
  rule(
    ['hostPorts', 'kubeProxyManagement', 'flexVolumePath'].map((name) => `netplaneNetwork.${name}`),
    same,
  ),
  rule(['nodeUpdateStrategy.maxUnavailable', 'nodeUpdateStrategy.canary', 'nodeUpdateStrategy.nodeTimeout'], same),
  rule('registry', registry),
  rule('imagePrefix', refused('names of images have nothing in front', 'Copy images under their names, and use registry and imagePath.')),
  rule('kubernetesProvider', byWord(PROVIDERS)),
  rule('cni.type', byWord(CNI_TYPES)),
  rule(
    'cni.ipam.type',
    byWord({
      Netplane: left('pools give addresses'),
      AmazonVPC: left("the platform's plugin does"),
      AzureVNET: left("the platform's plugin does"),
    }),
  ),
  // older operators write Enabled by themselves
  rule('netplaneNetwork.bgp', left('each pool says how packets travel, and BGPPeers are read themselves')),
  rule('netplaneNetwork.ipPools', kept('the IPPools: they are made once')),
  rule('netplaneNetwork.mtu', mtu),
  rule(
    'netplaneNetwork.linuxDataplane',
    byWord({ Iptables: dataplane('Standard'), Nftables: dataplane('Standard'), Standard: dataplane('Standard'), BPF: dataplane('BPF') }),
  ),
  rule('netplaneNetwork.nodeAddressAutodetectionV4', nodeAddress('v4')),
  rule('netplaneNetwork.nodeAddressAutodetectionV6', nodeAddress('v6')),
  rule('netplaneNetwork.multiInterfaceMode', byWord({ None: left('pods have one interface of ours') })),
  rule('netplaneNetwork.containerIPForwarding', byWord({ Disabled: left('pods do not forward packets') })),
  rule('netplaneNetwork.windowsDataplane', byWord({ Disabled: left('there are no Windows nodes') })),
  rule('netplaneNetwork.sysctl', refused('the plugin sets no sysctl', 'Give pods that need it the sysctl in their securityContext.')),
  rule(
    ['netplaneNetwork.linuxPolicySetupTimeoutSeconds', 'netplaneNetwork.bpfNetworkBootstrap'],
    left('a pod begins with its policy in force'),
  ),
  rule('flexVolumePath', moved('netplaneNetwork', 'flexVolumePath')),
  rule(['kubeletVolumePluginPath', 'csiNodeDriverDaemonSet'], NO_CSI),
  rule('controlPlaneNodeSelector', moved('controllerPods', 'nodeSelector')),
  rule('controlPlaneTolerations', moved('controllerPods', 'tolerations')),
  rule('controlPlaneReplicas', left('one of the controllers acts at a time, by its Lease')),
  rule('nodeMetricsPort', metrics),
  rule(['typhaMetricsPort', 'typhaAffinity', 'typhaDeployment', 'certificateManagement'], NO_TYPHA),
  rule('nodeUpdateStrategy.type', byWord({ RollingUpdate: left('nodes are changed by a rolling update') })),
  rule('nodeUpdateStrategy.rollingUpdate.maxUnavailable', moved('nodeUpdateStrategy', 'maxUnavailable')),
  rule('nodeUpdateStrategy.rollingUpdate.maxSurge', left('no second agent can run on a node: both have its network')),
  rule('componentResources', componentResources),
  ...overrides('netplaneNodeDaemonSet', 'nodePods', 'netplane-node'),
  ...overrides('netplaneControllersDeployment', 'controllerPods', 'netplane-controllers'),
  rule('serviceCIDRs', left('agents read the services themselves')),
  rule('logging', left('the plugin writes no log: the agent says what became of each call')),
  rule('nonPrivileged', left('rights are those that this version needs')),
  rule('fipsMode', byWord({ Disabled: left('it is off') })),
  rule(
    ['netplaneNodeWindowsDaemonSet', 'netplaneWindowsUpgradeDaemonSet', 'windowsNodes'],
    refused('there are no Windows nodes', TAKE_AWAY),
  ),
]
