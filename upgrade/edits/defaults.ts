// SPDX-License-Identifier: Apache-2.0
/** What an API server writes into objects by itself: such fields are no edits. Layer: upgrade (pure). */
import { deepEqual } from '#lib/base/deep-equal.ts'
import type { Raw } from '../stored/outcome.ts'
import { canonicalQuantity } from './quantity.ts'

/** A field with any of these values says nothing. */
const DEFAULTS: Readonly<Record<string, readonly unknown[]>> = {
  // pods
  dnsPolicy: ['ClusterFirst'],
  restartPolicy: ['Always'],
  schedulerName: ['default-scheduler'],
  terminationGracePeriodSeconds: [30],
  enableServiceLinks: [true],
  preemptionPolicy: ['PreemptLowerPriority'],
  hostNetwork: [false],
  hostPID: [false],
  hostIPC: [false],
  // containers
  terminationMessagePath: ['/dev/termination-log'],
  terminationMessagePolicy: ['File'],
  imagePullPolicy: ['IfNotPresent'],
  protocol: ['TCP'],
  procMount: ['Default'],
  stdin: [false],
  tty: [false],
  // probes
  timeoutSeconds: [1],
  periodSeconds: [10],
  successThreshold: [1],
  failureThreshold: [3],
  initialDelaySeconds: [0],
  scheme: ['HTTP'],
  // volumes
  readOnly: [false],
  recursiveReadOnly: ['Disabled'],
  mountPropagation: ['None'],
  defaultMode: [420],
  optional: [false],
  type: ['', 'ClusterIP', 'RollingUpdate'],
  // workloads
  replicas: [1],
  minReadySeconds: [0],
  revisionHistoryLimit: [10],
  progressDeadlineSeconds: [600],
  maxUnavailable: [1, '25%'],
  maxSurge: [0, '25%'],
  // services and roles
  internalTrafficPolicy: ['Cluster'],
  ipFamilyPolicy: ['SingleStack'],
  sessionAffinity: ['None'],
  apiGroup: ['', 'rbac.authorization.k8s.io'],
  publishNotReadyAddresses: [false],
}

/** Fields that are the server's whatever they say. */
const WRITTEN: ReadonlySet<string> = new Set(['status', 'clusterIP', 'clusterIPs', 'ipFamilies', 'serviceAccount', 'secrets'])

const ANNOTATIONS: ReadonlySet<string> = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  'kubectl.kubernetes.io/restartedAt',
  'deployment.kubernetes.io/revision',
  'deprecated.daemonset.template.generation',
])

/** Of metadata, what clients write. */
const METADATA = ['labels', 'annotations', 'finalizers', 'ownerReferences']

/** Whether a field says what holds without it. `around` is what it is a field of, called `parent`. */
export function saysNothing([key, value]: readonly [string, unknown], around: Raw, parent: string): boolean {
  if (value === null || value === undefined || WRITTEN.has(key)) return true
  if (parent === 'annotations') return ANNOTATIONS.has(key)
  if (DEFAULTS[key]?.some((one) => deepEqual(one, value)) === true) return true
  return followsFrom([key, value], around, parent)
}

/** Defaults that another field gives. */
function followsFrom([key, value]: readonly [string, unknown], around: Raw, parent: string): boolean {
  if (key === 'hostPort') return value === around['containerPort']
  if (key === 'targetPort') return value === around['port']
  return key === 'apiVersion' && parent === 'fieldRef' && value === 'v1'
}

/** What a container asks for is by itself what it may have. */
export function withoutImpliedRequests({ requests, limits, ...rest }: Raw): Raw {
  const [asked, most] = [amounts(requests), amounts(limits)]
  return { ...rest, limits: most, requests: Object.fromEntries(Object.entries(asked).filter(([name, value]) => most[name] !== value)) }
}

function amounts(value: unknown): Raw {
  return Object.fromEntries(Object.entries(value ?? {}).map(([name, amount]) => [name, canonicalQuantity(amount)]))
}

export function clientMetadata(metadata: Raw): Raw {
  return Object.fromEntries(METADATA.flatMap((key) => (metadata[key] === undefined ? [] : [[key, metadata[key]]])))
}
