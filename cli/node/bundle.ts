// SPDX-License-Identifier: Apache-2.0
/** `node bundle`: one file with everything about a node that helps another engineer to find out what is wrong.
 * Layer: cli. */
import { hostname } from 'node:os'
import { packageVersion } from '#lib/base/os/package.ts'
import type { NodeBundleOrder } from '../args.ts'
import { archiveCommand } from '../bundle/archive.ts'
import type { Bounds, Part } from '../bundle/collect.ts'
import type { CommandResult } from '../command-result.ts'
import { agentParts } from './agent-parts.ts'
import { factParts } from './facts.ts'
import { mapParts } from './maps.ts'
import { netParts } from './net-parts.ts'

/** Half a hundred parts: 100 MB unpacked at the very most, mostly less than one. */
const BOUNDS: Bounds = { partMs: 10_000, wholeMs: 60_000, partBytes: 2 << 20 }

export function bundleParts(order: Pick<NodeBundleOrder, 'agent' | 'stateDir' | 'keepDir' | 'log' | 'pins'>): Part[] {
  return [...factParts(), ...agentParts(order), ...mapParts(order.pins), ...netParts()]
}

export async function nodeBundleCommand(order: NodeBundleOrder): Promise<CommandResult> {
  return await archiveCommand(order, {
    name: `netplane-bundle-${hostname()}`,
    heading: (at) => [
      `Netplane ${packageVersion()}: node ${hostname()}, ${at}.`,
      'Taken by "netplanectl node bundle". Tokens, keys, passwords and certificates are left out; addresses, names of',
      'objects and policies are not. Maps and programs are as the kernel has them, whether an agent runs or not.',
    ],
    bounds: BOUNDS,
    parts: () => bundleParts(order),
  })
}
