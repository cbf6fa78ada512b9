// SPDX-License-Identifier: Apache-2.0
/** Edits of the config map of older installations, with the list of CNI plugins. Layer: upgrade (pure). */
import { carried, kept, left, refused } from '../edit.ts'
import { rule, unlessGone, type Decide, type EditRule } from '../rule.ts'
import { backend, endpoint, mtu } from './network.ts'

const OWN = 'list.plugins[netplane].'
const OTHER_PLUGIN = refused(
  "the agent's list has netplane-cni and portmap alone",
  'Take the plugin away, or have the runtime read a list of yours that calls netplane-cni.',
)

/** Off by taking it out of the list. */
const hostPorts: Decide = ({ mine }, { target }) => {
  if (mine !== undefined) return refused("portmap is called as the agent's list has it", 'Put it back as it was.')
  return target === 'netplane'
    ? carried('installation', ['netplaneNetwork', 'hostPorts'], 'Disabled')
    : left("the other plugin's list says who has host ports")
}

const isNo = (value: unknown): boolean => [false, 'false', undefined].includes(value as string)

const forwarding: Decide = ({ mine }) =>
  isNo(mine)
    ? left('pods do not forward packets')
    : refused('pods do not forward packets', 'Give pods that must the sysctl net.ipv4.ip_forward in their securityContext.')

const family: Decide = ({ mine }) =>
  isNo(mine)
    ? refused('pods have an address of each family that a pool is for', 'Disable the pools of the family.')
    : left('pods have an address of each family that a pool is for')

export const CONFIG_MAP_RULES: readonly EditRule[] = [
  rule('data.veth_mtu', mtu),
  rule('data.netplane_backend', backend),
  rule('data.typha_service_name', left('there is no typha: agents ask the API server')),
  rule('data.kubernetes_service_host', endpoint('host')),
  rule('data.kubernetes_service_port', endpoint('port')),
  rule(['data.canal_iface', 'data.masquerade', 'data.net-conf.json'], kept("flannel's settings, which stay as they are")),
  rule(`${OWN}mtu`, mtu),
  rule(`${OWN}log_*`, left('the plugin writes no log: the agent says what became of each call')),
  rule([`${OWN}ipam.assign_ipv4`, `${OWN}ipam.assign_ipv6`], family),
  rule(
    [`${OWN}ipam.ipv4_pools*`, `${OWN}ipam.ipv6_pools*`],
    unlessGone(left('nodeSelector and namespaceSelector of a pool say which pods it is for'), () =>
      refused(
        'nodeSelector and namespaceSelector of a pool say which pods it is for',
        'Set them, or annotate namespaces with cni.netplane.io/ipv4pools.',
      ),
    ),
  ),
  rule(
    `${OWN}ipam*`,
    refused(
      "addresses are of pools, and of the Node's podCIDR where there is no pool",
      'Put it back, or take the pools away for podCIDRs.',
    ),
  ),
  rule(`${OWN}container_settings*`, forwarding),
  rule(
    `${OWN}feature_control*`,
    unlessGone(left('it was not on'), () => refused('there is no feature to switch on in the list', 'Take it away.')),
  ),
  rule([`${OWN}policy*`, `${OWN}kubernetes*`, `${OWN}datastore_type`, `${OWN}nodename*`], left("the plugin asks the agent's socket")),
  rule('list.plugins[portmap]*', hostPorts),
  rule(
    'list.plugins[bandwidth]',
    unlessGone(left('no plugin limits bandwidth'), () => OTHER_PLUGIN),
  ),
  rule('list.plugins[*]*', OTHER_PLUGIN),
  rule('list.cniVersion', left('the agent asks plugins which versions they speak')),
  rule('list.name', refused('addresses of pods are known by the name k8s-pod-network', 'Put the name back.')),
  rule('metadata.*', left('this version does not have the object')),
]
