// SPDX-License-Identifier: Apache-2.0
/** Calls the plugin of a node as a container runtime does, and may kill it in the middle. Layer: soak. */
import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { systemClock } from '#lib/base/clock.ts'
import { isObject } from '#lib/base/object.ts'
import type { Lab } from '../../lab/lab.ts'
import { requireHolder } from '../../lab/processes/place-holders.ts'
import { listAt, numberAt, textAt } from '../../lab/raw.ts'

/** Where agents put what runtimes find; each node has a /run of its own. */
export const CONF_DIR = '/run/cni/net.d'
export const BIN_DIR = '/run/cni/bin'
export const NETNS_DIR = '/run/netns'

export interface Sandbox {
  readonly containerId: string
  readonly namespace: string
  readonly pod: string
}

export type Call = { readonly cutMs?: number | undefined; readonly onCut?: (() => void) | undefined } & (
  | { readonly command: 'ADD' | 'DEL'; readonly sandbox: Sandbox }
  | { readonly command: 'CHECK'; readonly sandbox: Sandbox; readonly result: unknown }
  | { readonly command: 'GC'; readonly valid: readonly Sandbox[] }
)

export type Answer =
  | { readonly kind: 'done'; readonly result: unknown }
  | { readonly kind: 'refused'; readonly code: number; readonly message: string }
  /** a signal ended it: what has become of the call is not known */
  | { readonly kind: 'cut' }

/** `cutMs`: after which it is cut: by SIGKILL, or by `onCut` where it is given. Rejects when there is no network
 * configuration on the node yet. */
export async function callShim(lab: Lab, node: string, call: Call): Promise<Answer> {
  const { type, ...config } = networkConfig(lab, node)
  const child = lab.spawn(`node/${node}`, ['env', ...environment(call), `${BIN_DIR}/${type}`], ['pipe', 'pipe', 'inherit'])
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  child.stdin?.on('error', () => undefined).end(JSON.stringify({ ...config, type, ...more(call) }))
  const cut = call.onCut ?? (() => child.kill('SIGKILL'))
  const cancel = call.cutMs === undefined ? () => undefined : systemClock.after(call.cutMs, cut)
  const [status, output] = await Promise.all([ended, child.stdout === null ? '' : text(child.stdout)])
  cancel()
  if (status === null) return { kind: 'cut' }
  const result: unknown = output === '' ? {} : JSON.parse(output)
  if (status === 0) return { kind: 'done', result }
  return { kind: 'refused', code: numberAt(result, 'code') ?? 0, message: textAt(result, 'msg') ?? output }
}

/** "10.0.0.1", of an answer to ADD. */
export function addressesIn(result: unknown): readonly string[] {
  return listAt(result, 'ips').map((ip) => (textAt(ip, 'address') ?? '').replace(/\/\d+$/, ''))
}

function environment(call: Call): string[] {
  const common = [`CNI_COMMAND=${call.command}`, `CNI_PATH=${BIN_DIR}`]
  if (call.command === 'GC') return common
  const { containerId, namespace, pod } = call.sandbox
  return [
    ...common,
    `CNI_CONTAINERID=${containerId}`,
    `CNI_NETNS=${NETNS_DIR}/${containerId}`,
    'CNI_IFNAME=eth0',
    `CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=${namespace};K8S_POD_NAME=${pod};K8S_POD_INFRA_CONTAINER_ID=${containerId}`,
  ]
}

function more(call: Call): object {
  switch (call.command) {
    case 'ADD':
    case 'DEL':
      return {}
    case 'CHECK':
      return { prevResult: call.result }
    case 'GC':
      return { 'cni.dev/valid-attachments': call.valid.map(({ containerId }) => ({ containerID: containerId, ifname: 'eth0' })) }
  }
}

/** Of the first plugin of the list, as runtimes make it. */
function networkConfig(lab: Lab, node: string): { readonly type: string; readonly [field: string]: unknown } {
  const path = `/proc/${requireHolder(lab.name, node)}/root${CONF_DIR}/10-netplane.conflist`
  const list: unknown = JSON.parse(readFileSync(path, 'utf8'))
  const [plugin] = listAt(list, 'plugins')
  return { ...(isObject(plugin) ? plugin : {}), type: textAt(plugin, 'type') ?? '', cniVersion: '1.1.0', name: textAt(list, 'name') }
}
