// SPDX-License-Identifier: Apache-2.0
/** How pods' packets travel: MTU, backend, and where the API server is. Layer: upgrade (pure). */
import { fieldsOf, textOf } from '#lib/base/object.ts'
import { carried, kept, left, refused } from '../edit.ts'
import { unlessGone, type Decide } from '../rule.ts'

/** Whether pods have our network: otherwise the other plugin's list says what they have. */
function isOwn(target: string): boolean {
  return target === 'netplane'
}

/** Of pods' devices. A text, as it is in a config map. */
export const mtu: Decide = ({ mine }, { target }) => {
  if (mine === undefined || textOf(mine) === '0' || textOf(mine).startsWith('__')) return left('nodes find out the MTU')
  if (!isOwn(target)) return left("pods have the MTU of the other plugin's list")
  const bytes = Number(mine)
  return carried('installation', ['netplaneNetwork', 'mtu'], Number.isNaN(bytes) ? mine : bytes)
}

const NO_BGP = refused('agents speak no BGP', 'Have pools with vxlanMode, or the network route to the nodes, and set the backend to vxlan.')

export const bgpSetting: Decide = unlessGone(left('agents speak no BGP'), () => NO_BGP)

export const backend: Decide = ({ mine }, { target }) => {
  if (mine === undefined || mine === 'vxlan' || !isOwn(target)) return left('each pool says how packets travel')
  if (mine === 'bird') return NO_BGP
  return refused(
    'agents route to pods, by VXLAN where the pool says so',
    'Set the backend to vxlan; vxlanMode of the pools says whether there is a tunnel.',
  )
}

const ENDPOINT_KEYS = { host: 'CLUSTER_SERVICE_HOST', port: 'CLUSTER_SERVICE_PORT' } as const

/** Pods of this version read it from a config map of its own. */
export function endpoint(what: keyof typeof ENDPOINT_KEYS): Decide {
  const key = ENDPOINT_KEYS[what]
  return ({ mine }, { endpoint: map }) => {
    if (mine === undefined || mine === '') return left('pods find the API server by cluster-services-endpoint')
    if (fieldsOf(map?.['data'])[key] === mine) return kept(`ConfigMap cluster-services-endpoint: ${key}`)
    return refused(
      'pods of this version find the API server by ConfigMap cluster-services-endpoint alone',
      `Write ${key} there; netplanectl install endpoint --namespace kube-system prints it.`,
    )
  }
}
