// SPDX-License-Identifier: Apache-2.0
/** What parts of an older manifest go by: its version and variant, names, and pieces that several have.
 * Layer: upgrade (pure). */
import type { OldVariant } from '../../found/found.ts'
import { hasChange, type Change } from './changes.ts'

export const NAMESPACE = 'kube-system'
export const CONTROLLERS = 'netplane-controllers'
export const TYPHA = 'netplane-typha'
export const PLUGIN_ACCOUNT = 'netplane-cni-plugin'
export const FLANNEL_CONTAINER = 'kube-flannel'

export interface Template {
  readonly version: string
  readonly variant: OldVariant
  readonly has: (change: Change) => boolean
  /** The DaemonSet; its account as well. */
  readonly node: string
  readonly configMap: string
  /** Pods have our networking: blocks of addresses, and routes. */
  readonly isNetworking: boolean
  readonly hasTypha: boolean
}

export function templateOf(version: string, variant: OldVariant): Template {
  const isCanal = variant === 'canal'
  return {
    version: version.replace(/^v/, ''),
    variant,
    has: (change) => hasChange(version, change),
    node: isCanal ? 'canal' : 'netplane-node',
    configMap: isCanal ? 'canal-config' : 'netplane-config',
    isNetworking: !isCanal && variant !== 'policy-only',
    hasTypha: variant === 'typha' || variant === 'policy-only',
  }
}

/** "netplane/node:v3.27.0" */
export function imageOf({ version }: Template, name: string): string {
  return `netplane/${name}:v${version}`
}

export function fromConfigMap({ configMap }: Template, name: string, key: string): object {
  return { name, valueFrom: { configMapKeyRef: { name: configMap, key } } }
}

export function nodeName(name: string): object {
  return { name, valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }
}

/** Variables with a value of their own. */
export function said(variables: Readonly<Record<string, string>>): readonly object[] {
  return Object.entries(variables).map(([name, value]) => ({ name, value }))
}

/** Where a container finds the API server without a service. */
export function endpointOf(template: Template): object {
  return template.has('endpointMap') ? { envFrom: [{ configMapRef: { name: 'cluster-services-endpoint', optional: true } }] } : {}
}

/** The same in the variant for eBPF, which says it in its own config map. */
export function endpointVariables(template: Template): readonly object[] {
  if (template.variant !== 'bpf') return []
  return [
    fromConfigMap(template, 'CLUSTER_SERVICE_HOST', 'kubernetes_service_host'),
    fromConfigMap(template, 'CLUSTER_SERVICE_PORT', 'kubernetes_service_port'),
  ]
}

export function labelled(name: string): Readonly<Record<string, string>> {
  return { 'k8s-app': name }
}
