// SPDX-License-Identifier: Apache-2.0
/** How nodes reach each other's pods before an upgrade, and while it goes from node to node. Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { fieldsOf, textOf } from '#lib/base/object.ts'
import type { Refusal } from '../../refusal.ts'
import type { Agents } from '../agents.ts'
import type { Check } from '../check.ts'
import { objectsOf, resourceText, STORED_GROUP } from '../objects.ts'
import type { Traits } from '../traits.ts'
import { agentsConfigMap, oldVariantOf, targetOf } from '../variant.ts'

/** The default of older agents as well. */
const BGP = 'bird'

export const WAY_REFUSALS: readonly Check[] = [
  { when: "nodes know the ways to each other's pods by BGP alone", find: byBgpAlone },
  { when: 'agents for policy alone are in BPF mode', find: servicesOfPolicyOnly },
  { when: "flannel is beside the agent, and the agent's ConfigMap is not there", find: flannelWithoutMap },
]

/** A node whose BGP daemon ends is forgotten by the others at once, with the ranges of its pods. */
function byBgpAlone({ facts, main }: Traits): readonly Refusal[] {
  if (main === undefined || main.isOurs || backendOf(main) !== BGP || objectsOf(facts, '', 'Node').length < 2) return []
  return objectsOf(facts, STORED_GROUP, 'IPPool')
    .filter(isPlain)
    .map((pool) => ({
      ...{ resource: resourceText(pool), field: 'spec.vxlanMode', value: fieldsOf(pool['spec'])['vxlanMode'] },
      reason: 'agents of this version speak no BGP: nodes not yet upgraded would lose the ways to pods of those that are',
      remedy: 'Set vxlanMode: CrossSubnet (and ipipMode: Never) with the CLI of the installed version, and see that pods reach each other',
    }))
}

/** What serves for them then is in Standard mode, and kube-proxy may be gone. */
function servicesOfPolicyOnly({ facts, main, method, isBpf }: Traits): readonly Refusal[] {
  if (main === undefined || main.isOurs || !isBpf || targetOf(main, method, facts) !== 'netplane-policy-only') return []
  return [
    {
      ...{ resource: resourceText(main.daemonSet), field: 'FELIX_BPFENABLED', value: true },
      reason: 'this version has policy alone in Standard mode: pods would lose the services that these agents serve',
      remedy: 'Run kube-proxy again, set bpfEnabled: false, and see that services answer',
    },
  ]
}

/** It has flannel's settings as well. */
function flannelWithoutMap({ facts, main }: Traits): readonly Refusal[] {
  if (main === undefined || main.isOurs || oldVariantOf(main, facts) !== 'canal') return []
  const name = agentsConfigMap(main.daemonSet)
  const isThere = objectsOf(facts, '', 'ConfigMap').some(({ metadata }) => metadata.namespace === main.namespace && metadata.name === name)
  if (isThere) return []
  return [
    {
      ...{ resource: `ConfigMap ${main.namespace}/${name}`, field: '', value: undefined },
      reason: 'flannel goes by it, and cannot be given a DaemonSet of its own without it',
      remedy: 'Make it again from the manifest of the installed version',
    },
  ]
}

function backendOf({ environment: { values } }: Agents): string {
  const said = values['NETPLANE_NETWORKING_BACKEND'] ?? ''
  return said === '' ? BGP : said
}

/** Older agents make the ways to pods of pools with VXLAN themselves. */
function isPlain(pool: ApiObject): boolean {
  const { disabled, vxlanMode } = fieldsOf(pool['spec'])
  const mode = textOf(vxlanMode).toLowerCase()
  return disabled !== true && (mode === '' || mode === 'never')
}
