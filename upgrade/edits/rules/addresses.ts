// SPDX-License-Identifier: Apache-2.0
/** Which address a node has: older agents looked for it, those of this version take what the Node says.
 * Layer: upgrade (pure). */
import type { ApiObject } from '#lib/api/resource.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { firstFew } from '#lib/base/text/first-few.ts'
import { fieldsOf, objectsIn, textOf } from '#lib/base/object.ts'
import { left, refused } from '../edit.ts'
import { unlessGone, type Decide } from '../rule.ts'

/** Of older agents, on each Node: "10.0.0.1/24". */
const FOUND = { v4: 'netplane.io/IPv4Address', v6: 'netplane.io/IPv6Address' } as const

const REASON = 'agents take the InternalIP of their Node, and look for no other address'

/** It makes no difference where both come to the same address, on every node. What older versions did without being
 * told is refused where it is known to be another one. */
export function nodeAddress(family: keyof typeof FOUND): Decide {
  return unlessGone(left(REASON), ({ mine }, { nodes }) => {
    const isUsual = USUAL.some((usual) => deepEqual(usual, mine))
    const asked = isUsual ? nodes.filter((node) => addressIn(node, FOUND[family]) !== '') : nodes
    const others = asked.filter((node) => !isInternal(node, addressIn(node, FOUND[family]))).map(({ metadata }) => metadata.name)
    if (others.length === 0 && (isUsual || nodes.length > 0)) return left(`${REASON}: no node is known to have another one`)
    const where = others.length === 0 ? '' : `, which is another one, or not known, on ${firstFew(others)}`
    return refused(`${REASON}${where}`, 'Have the kubelet say the address (--node-ip), and take this away once the Nodes have it.')
  })
}

const USUAL: readonly unknown[] = ['autodetect', 'first-found', { firstFound: true }]

function addressIn({ metadata }: ApiObject, annotation: string): string {
  const [address = ''] = (metadata.annotations?.[annotation] ?? '').split('/')
  return address
}

function isInternal(node: ApiObject, found: string): boolean {
  const addresses = objectsIn(fieldsOf(node['status'])['addresses'])
  return addresses.some(({ type, address }) => type === 'InternalIP' && textOf(address) === found)
}

/** "autodetect" and "none" of IPv6 say which families a node has. */
export const secondFamily: Decide = (edit, around) =>
  edit.mine === undefined || ['', 'none', 'autodetect'].includes(textOf(edit.mine))
    ? left('nodes and pods have the families of their addresses')
    : nodeAddress('v6')(edit, around)
