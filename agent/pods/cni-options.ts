// SPDX-License-Identifier: Apache-2.0
/** Flags of the agent about pods' networks. Layer: agent. */
import { ConfigError } from '#lib/base/errors.ts'
import type { FoldersOnNode } from '../cni/install/installer.ts'
import { LEAST_MTU } from '../cni/networking/mtu.ts'
import { cniSocket } from '../run/state-files.ts'

/** Where container runtimes find us. */
export interface CniOptions {
  /** gets the network configuration */
  readonly confDir: string
  /** gets the plugin; other plugins are there as well */
  readonly binDir: string
  /** both folders by the node's own paths, below its root as this process sees it; undefined: they are these paths */
  readonly onNode?: FoldersOnNode | undefined
  /** where the plugin asks */
  readonly socket: string
  /** another plugin makes veths and gives addresses: ours is the last in its list */
  readonly chained: boolean
  /** another program makes ways to other nodes' pods, by the ranges of their Nodes: all addresses are of these */
  readonly local: boolean
  /** pods may have ports of the node, where the plugin for these is there */
  readonly hostPorts: boolean
  /** of pods' devices; undefined: as the node's devices have it */
  readonly mtu: number | undefined
}

const DEFAULT_BIN_DIR = '/opt/cni/bin'
/** Go together. */
export const ON_NODE = ['node-root', 'cni-conf-on-node', 'cni-bin-on-node'] as const

interface CniFlags {
  readonly 'cni-conf-dir'?: string | undefined
  readonly 'cni-bin-dir'?: string | undefined
  readonly 'node-root'?: string | undefined
  readonly 'cni-conf-on-node'?: string | undefined
  readonly 'cni-bin-on-node'?: string | undefined
  readonly 'cni-chained'?: boolean | undefined
  readonly 'cni-local'?: boolean | undefined
  readonly 'cni-none'?: boolean | undefined
  readonly 'cni-mtu'?: string | undefined
  readonly 'cni-no-host-ports'?: boolean | undefined
}

export function cniOf(flags: CniFlags, stateDir: string): { readonly cni?: CniOptions; readonly foreignNetwork?: true } {
  const { 'cni-conf-dir': confDir, 'cni-bin-dir': binDir = DEFAULT_BIN_DIR } = flags
  const { 'cni-chained': chained = false, 'cni-local': local = false } = flags
  const without = (names: readonly (keyof CniFlags)[], why: string): void => {
    for (const name of names) if (flags[name] !== undefined) throw new ConfigError(`--${name}`, why)
  }
  if (chained) without(['cni-local', 'cni-mtu', 'cni-no-host-ports'], "does not go with --cni-chained: that is the other plugin's")
  if (confDir === undefined) {
    without(['cni-bin-dir', ...ON_NODE, 'cni-chained', 'cni-local', 'cni-mtu', 'cni-no-host-ports'], 'only goes with --cni-conf-dir')
    return flags['cni-none'] === true ? { foreignNetwork: true } : {}
  }
  without(['cni-none'], 'does not go with --cni-conf-dir: no network configuration is ours then')
  const of = { hostPorts: flags['cni-no-host-ports'] !== true, mtu: mtuOf(flags['cni-mtu']) }
  return { cni: { confDir, binDir, onNode: onNodeOf(flags), socket: cniSocket(stateDir), chained, local, ...of } }
}

function onNodeOf(flags: CniFlags): FoldersOnNode | undefined {
  const [root, confDir, binDir] = ON_NODE.map((name) => flags[name])
  if (root === undefined && confDir === undefined && binDir === undefined) return undefined
  if (root === undefined || confDir === undefined || binDir === undefined)
    throw new ConfigError('--node-root', 'goes with --cni-conf-on-node and --cni-bin-on-node')
  return { root, confDir, binDir }
}

function mtuOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const bytes = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0
  if (bytes < LEAST_MTU.v4 || bytes > 65_535)
    throw new ConfigError('--cni-mtu', `${JSON.stringify(text)} is no number of bytes from ${LEAST_MTU.v4} to 65535`)
  return bytes
}
