// SPDX-License-Identifier: Apache-2.0
/** Users of a test's API server, by bearer token; and the kubeconfig of each. Layer: testkit (pure). */

export interface Identity {
  readonly user: string
  readonly groups: readonly string[]
}

export const ADMIN: Identity = { user: 'admin', groups: ['system:masters'] }
export const CONTROLLERS: Identity = { user: 'system:kube-controller-manager', groups: [] }
export const SCHEDULER: Identity = { user: 'system:kube-scheduler', groups: [] }

export function kubelet(node: string): Identity {
  return { user: `system:node:${node}`, groups: ['system:nodes'] }
}

export function isNode(identity: Identity): boolean {
  return identity.groups.includes('system:nodes')
}

/** They reach a server that only namespaces of the test can reach. */
export function tokenOf(identity: Identity): string {
  return `test-only-${identity.user.replaceAll(':', '-')}`
}

/** The file of `--token-auth-file`. */
export function tokenFile(identities: readonly Identity[]): string {
  return identities.map((identity) => `${tokenOf(identity)},${identity.user},${identity.user},"${identity.groups.join(',')}"\n`).join('')
}

/** A kubeconfig as JSON, which is YAML too. */
export function kubeconfigText(server: string, certificate: string, user: object): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'cluster', cluster: { server, 'certificate-authority': certificate } }],
    users: [{ name: 'user', user }],
    contexts: [{ name: 'context', context: { cluster: 'cluster', user: 'user' } }],
    'current-context': 'context',
  })
}
