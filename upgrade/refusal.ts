// SPDX-License-Identifier: Apache-2.0
/** Why an upgrade is not begun, or does not go on. Layer: upgrade (pure). */

export interface Refusal {
  /** "DaemonSet kube-system/netplane-node" */
  readonly resource: string
  /** "spec.template.spec.hostNetwork"; empty: the whole of it */
  readonly field: string
  readonly value: unknown
  readonly reason: string
  /** what an administrator does about it, as a sentence or a command */
  readonly remedy: string
}

/** "DaemonSet kube-system/netplane-node: spec.x: 1: reason. Remedy" */
export function refusalText({ resource, field, value, reason, remedy }: Refusal): string {
  const shown = value === undefined ? '' : JSON.stringify(value)
  const head = [resource, field, shown, reason].filter((part) => part !== '').join(': ')
  return `${head}. ${remedy}`.trim()
}
