// SPDX-License-Identifier: Apache-2.0
/** What an agent keeps for the one after it, besides what is pinned. Layer: agent. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { LastGoodFile } from '#lib/store/last-good.ts'

/** Old values of sysctls. */
export function sysctlFile(stateDir: string): string {
  return join(stateDir, 'sysctls.json')
}

/** That an agent runs on this node. */
export function lockPath(stateDir: string): string {
  return join(stateDir, 'agent.lock')
}

/** Last good versions of manifests that cannot be read. */
export function lastGoodFile(keepDir: string): LastGoodFile {
  return new LastGoodFile(lastGoodPath(keepDir))
}

/** Sandboxes, and blocks of addresses. */
export function cniFolder(stateDir: string): string {
  return join(stateDir, 'cni')
}

/** Where the plugin asks. */
export function cniSocket(stateDir: string): string {
  return join(stateDir, 'cni.sock')
}

/** Where the node's flows are read. */
export function flowSocket(stateDir: string): string {
  return join(stateDir, 'flows.sock')
}

/** What an agent that ends knows of flows. */
export function savedFlows(stateDir: string): string {
  return join(stateDir, 'flows.json')
}

/** A file that is there once this node has been ready since its start: the plugin answers by it while no agent runs. */
export function cniReadyFile(socket: string): string {
  return `${socket}.ready`
}

/** What an agent that was killed leaves there, or one that ended for the next. */
export function leftFiles(stateDir: string): readonly string[] {
  const socket = cniSocket(stateDir)
  return [socket, cniReadyFile(socket), flowSocket(stateDir), savedFlows(stateDir)]
}

/** Where runtimes' files were put. */
export function cniFoldersFile(keepDir: string): string {
  return join(keepDir, 'cni-folders.json')
}

export function dropLastGood(keepDir: string): void {
  rmSync(lastGoodPath(keepDir), { force: true })
}

function lastGoodPath(keepDir: string): string {
  return join(keepDir, 'last-good.json')
}
