// SPDX-License-Identifier: Apache-2.0
/** What OpenShift lets pods of an account have; without it none has the node's network or folders.
 * Layer: lib/render (pure). */
import type { Computed } from './computed.ts'
import { labelsOf } from './input.ts'

export const SECURITY_CONSTRAINTS = { apiVersion: 'security.openshift.io/v1', kind: 'SecurityContextConstraints' } as const

export interface ConstraintsInput {
  /** of the account, and of the object: it belongs to no namespace */
  readonly name: string
  readonly namespace: string
  /** what containers may add; 'privileged': one of them is */
  readonly capabilities: readonly string[] | 'privileged'
}

/** One for the account where the platform asks for it. */
export function securityConstraints({ platform }: Pick<Computed, 'platform'>, of: ConstraintsInput): readonly object[] {
  return platform.needsScc ? [constraints(of)] : []
}

/** Every field that the server insists on. */
function constraints({ name, namespace, capabilities }: ConstraintsInput): object {
  const isPrivileged = capabilities === 'privileged'
  const any = { type: 'RunAsAny' }
  return {
    ...SECURITY_CONSTRAINTS,
    metadata: { name, labels: labelsOf(name) },
    users: [`system:serviceaccount:${namespace}:${name}`],
    groups: [],
    priority: 0,
    allowPrivilegedContainer: isPrivileged,
    allowPrivilegeEscalation: isPrivileged || capabilities.length > 0,
    allowedCapabilities: isPrivileged ? ['*'] : capabilities,
    defaultAddCapabilities: [],
    requiredDropCapabilities: [],
    allowHostNetwork: true,
    allowHostPorts: true,
    allowHostPID: false,
    allowHostIPC: false,
    allowHostDirVolumePlugin: true,
    volumes: ['configMap', 'emptyDir', 'hostPath', 'projected', 'secret'],
    readOnlyRootFilesystem: false,
    runAsUser: any,
    seLinuxContext: any,
    fsGroup: any,
    supplementalGroups: any,
    seccompProfiles: ['*'],
  }
}
