// SPDX-License-Identifier: Apache-2.0
/** A pod on another node that asks node ports of the operator's own, and what it says. Layer: operator (pure).
 *
 * A DaemonSet for that one node: so it may be made by its name alone, as what else the operator runs. */
import { fieldsOf, isObject, objectsIn, textOf } from '#lib/base/object.ts'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import type { Computed } from '#lib/render/computed.ts'
import { labelsOf, NODE, pullSecrets } from '#lib/render/input.ts'
import { OUTSIDE } from '#lib/render/operator-pod.ts'

/** Of the pods' template: those of another question have nothing to say. */
const RUN = 'operator.netplane.io/outside-run'

const COMMAND = 'netplane-operator ask "$@" > /dev/termination-log'
const HARDENED = {
  runAsNonRoot: true,
  runAsUser: 65_532,
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
}

export interface AskingPod {
  readonly namespace: string
  readonly image: string
  readonly computed: Computed
  /** the node that it runs on */
  readonly from: string
  readonly places: readonly string[]
  /** for so long one that is silent is asked again */
  readonly patienceMs: number
  /** another value is another question */
  readonly run: string
}

export function renderAsking(input: AskingPod): ApiObject {
  const { namespace, image, from, places, patienceMs, run } = input
  const labels = labelsOf(OUTSIDE)
  const container = { image, imagePullPolicy: 'IfNotPresent', securityContext: HARDENED }
  const ask = {
    ...{ ...container, name: 'ask', command: ['sh', '-ec', COMMAND, 'sh'] },
    args: [`--for=${patienceMs / 1000}`, ...places.map((place) => `--place=${place}`)],
    terminationMessagePolicy: 'FallbackToLogsOnError',
    resources: { requests: { cpu: '10m', memory: '60Mi' } },
  }
  const rest = { ...container, name: 'rest', command: ['sleep', 'infinity'], resources: { requests: { cpu: '1m', memory: '2Mi' } } }
  const isFrom = { matchFields: [{ key: 'metadata.name', operator: 'In', values: [from] }] }
  const spec = {
    // for what the platform lets pods have; its token is not there
    serviceAccountName: NODE,
    automountServiceAccountToken: false,
    priorityClassName: 'system-node-critical',
    hostNetwork: true,
    dnsPolicy: 'Default',
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 1,
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [isFrom] } } },
    tolerations: [{ operator: 'Exists' }],
    ...pullSecrets(input),
    initContainers: [ask],
    containers: [rest],
  }
  return asApiObject({
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name: OUTSIDE, namespace, labels },
    spec: {
      selector: { matchLabels: { 'app.kubernetes.io/name': OUTSIDE } },
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: '100%' } },
      template: { metadata: { labels, annotations: { [RUN]: run } }, spec },
    },
  })
}

/** Lines that the pod of this run has said; undefined: it has not ended yet. `pods`: of {@link OUTSIDE}. */
export function askingAnswer(pods: readonly ApiObject[], run: string): readonly string[] | undefined {
  const own = pods.filter(({ metadata }) => metadata.annotations?.[RUN] === run)
  const ends = own
    .flatMap(({ status }) => objectsIn(fieldsOf(status)['initContainerStatuses']))
    .map(({ state }) => fieldsOf(state)['terminated'])
  const end = ends.filter(isObject).find(({ exitCode }) => exitCode === 0)
  return end === undefined ? undefined : textOf(end['message']).split('\n')
}
