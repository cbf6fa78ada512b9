// SPDX-License-Identifier: Apache-2.0
/** Raw IPPool → model. Layer: lib/kube. */
import { addrBits, isV4 } from '../../base/ip.ts'
import type { IPPool } from '../../model/ip-pool.ts'
import { ALL } from '../../model/selector/selector.ts'
import { FieldError, inside } from './fields.ts'
import type { ParseInput } from './fields.ts'
import { field, fieldOr, listed, object, required } from '../schema/shape.ts'
import { cidr, flag, integer, word } from '../schema/primitives.ts'
import { selector } from '../schema/v3-rules.ts'

const MODES = word('Never', 'CrossSubnet', 'Always')

export const ipPoolSpec = object(
  {
    cidr: required('The addresses; cannot be changed.', cidr),
    vxlanMode: fieldOr(
      'Never',
      'Whether packets between nodes travel in the tunnel: never, to nodes beyond a router only, or to all.',
      MODES,
    ),
    ipipMode: fieldOr('Never', 'IP in IP is not supported: anything but Never is reported, and counts as Never.', MODES),
    natOutgoing: fieldOr(false, 'Whether flows of its pods to the outside leave with the address of their node.', flag),
    disabled: fieldOr(false, 'Whether it gives no more addresses away; addresses that it gave keep its settings.', flag),
    disableBGPExport: fieldOr(false, 'Accepted and without effect: nothing is announced by BGP.', flag),
    blockSize: field('Prefix length of the blocks that nodes take from it; cannot be changed. 26, or 122 for IPv6.', integer(20, 128)),
    nodeSelector: field('Nodes that may take from it, by their labels; all when it is missing.', selector),
    namespaceSelector: field('Namespaces whose pods may take from it, by their labels; all when it is missing.', selector),
    allowedUses: listed('What its addresses are for.', word('Workload', 'Tunnel', 'LoadBalancer'), { most: 3 }),
    assignmentMode: field('Whether addresses are taken without being asked for.', word('Automatic', 'Manual')),
  },
  {
    rules: [
      {
        path: 'blockSize',
        reason: 'must be at least the prefix length of cidr, and 20..32 or 116..128',
        cel: "!has(self.blockSize) || (self.blockSize >= int(self.cidr.substring(self.cidr.indexOf('/') + 1)) && (self.cidr.contains(':') ? self.blockSize >= 116 : self.blockSize <= 32))",
        holds: ({ cidr: { addr, bits }, blockSize }) =>
          blockSize === undefined || (blockSize >= bits && (isV4(addr) ? blockSize <= 32 : blockSize >= 116)),
      },
    ],
  },
)

/** A disabled pool is one that gives no more addresses away: its settings still hold for those it gave. */
export function parseIPPool(input: ParseInput): IPPool {
  const spec = inside(input.raw, 'spec', ipPoolSpec.read)
  if (spec.ipipMode !== 'Never') input.refuse(new FieldError('spec.ipipMode', 'is not supported: vxlanMode is'))
  const { addr, bits } = spec.cidr
  const isForPods = spec.allowedUses.length === 0 || spec.allowedUses.some((use: string) => use === 'Workload')
  return {
    kind: 'IPPool',
    namespace: '',
    name: input.name,
    cidr: spec.cidr,
    natOutgoing: spec.natOutgoing,
    overlay: spec.vxlanMode,
    blockBits: spec.blockSize ?? Math.max(bits, addrBits(addr) - USUAL_BLOCK_BITS),
    assigns: spec.disabled || !isForPods ? 'none' : spec.assignmentMode === 'Manual' ? 'asked' : 'all',
    nodes: spec.nodeSelector ?? ALL,
    namespaces: spec.namespaceSelector ?? ALL,
  }
}

/** 64 addresses, unless the pool has fewer. */
const USUAL_BLOCK_BITS = 6
