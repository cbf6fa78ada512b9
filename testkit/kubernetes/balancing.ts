// SPDX-License-Identifier: Apache-2.0
/** What a cloud does for services that want a load balancer, one service at a time: what to ask of it, and what to
 * say of it. Layer: testkit (pure). */
import { listAt, numberAt, textAt } from '../../lab/raw.ts'

/** The service stays until its balancer is gone. */
const FINALIZER = 'service.kubernetes.io/load-balancer-cleanup'
/** Where kube-proxy says whether a node is well. */
const NODE_HEALTH_PORT = 10256

export interface BalancedService {
  readonly key: string
  readonly path: string
  /** it wants a load balancer; else it is one whose balancer goes */
  readonly wanted: boolean
  /** a node is asked here, at /healthz, whether it takes the service's traffic */
  readonly healthPort: number
  /** each client keeps to one node */
  readonly sticky: boolean
  /** what the service says already */
  readonly address: string | undefined
  /** of the object, with ours and without */
  readonly finalizers: { readonly ours: boolean; readonly others: readonly string[] }
}

/** Services that concern a balancer. */
export function balancedOf(services: readonly unknown[]): BalancedService[] {
  return services.map(balanced).filter(({ wanted, finalizers }) => wanted || finalizers.ours)
}

/** Merge patches, by the path they go to: `address` for one that wants a balancer, nothing for one whose balancer is
 * gone. */
export function patchesOf(service: BalancedService, address: string | undefined): { readonly path: string; readonly patch: object }[] {
  const { finalizers, path, wanted } = service
  const others = finalizers.others
  const marks = { path, patch: { metadata: { finalizers: wanted ? [...others, FINALIZER] : others } } }
  const status = {
    path: `${path}/status`,
    patch: { status: { loadBalancer: address === undefined ? null : { ingress: [{ ip: address }] } } },
  }
  return [...(service.address === address ? [] : [status]), ...(finalizers.ours === wanted ? [] : [marks])]
}

function balanced(service: unknown): BalancedService {
  const namespace = textAt(service, 'metadata.namespace') ?? ''
  const name = textAt(service, 'metadata.name') ?? ''
  const finalizers = listAt(service, 'metadata.finalizers').filter((mark) => typeof mark === 'string')
  const ours = textAt(service, 'spec.type') === 'LoadBalancer' && textAt(service, 'spec.loadBalancerClass') === undefined
  const [ingress] = listAt(service, 'status.loadBalancer.ingress')
  return {
    key: `${namespace}/${name}`,
    path: `/api/v1/namespaces/${namespace}/services/${name}`,
    wanted: ours && textAt(service, 'metadata.deletionTimestamp') === undefined,
    healthPort: numberAt(service, 'spec.healthCheckNodePort') ?? NODE_HEALTH_PORT,
    sticky: textAt(service, 'spec.sessionAffinity') === 'ClientIP',
    address: textAt(ingress, 'ip'),
    finalizers: { ours: finalizers.includes(FINALIZER), others: finalizers.filter((mark) => mark !== FINALIZER) },
  }
}
