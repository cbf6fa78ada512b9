// SPDX-License-Identifier: Apache-2.0
/** What a kubelet says of its node and of its pods, whatever becomes of them. Layer: testkit (pure). */
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { writeReport } from '#lib/preflight/report.ts'
import { listAt, textAt } from '../../../lab/raw.ts'

/** What becomes of a pod. `unready`: it runs, and never says that it is ready. */
export type PodFate = 'ready' | 'crash-loop' | 'image-pull' | 'unready'

const ROOM = { cpu: '4', memory: '8Gi', pods: '110' }

/** `room` false: no pod that asks for anything has a place there. */
export function nodeObject(name: string, room = true): ApiObject {
  const resources = room ? ROOM : { ...ROOM, cpu: '0', memory: '0' }
  return asApiObject({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' } },
    status: { capacity: resources, allocatable: resources, conditions: [nodeReady()] },
  })
}

export function nodeReady(): object {
  const now = new Date().toISOString()
  return { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'ready', lastHeartbeatTime: now, lastTransitionTime: now }
}

/** A Lease as a kubelet keeps it. */
export function nodeLease(name: string, seconds: number): ApiObject {
  return asApiObject({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { namespace: 'kube-node-lease', name },
    spec: { holderIdentity: name, leaseDurationSeconds: seconds, renewTime: new Date().toISOString().replace('Z', '000Z') },
  })
}

/** `said`: by its init containers, which have done their work; of a preflight: it has found nothing. */
export function podStatus(pod: ApiObject, fate: PodFate, said = writeReport([])): object {
  const now = new Date().toISOString()
  const is = (type: string, holds: boolean, message = ''): object => ({
    ...{ type, status: holds ? 'True' : 'False', lastTransitionTime: now },
    ...(holds ? {} : { reason: 'ContainersNotReady', message }),
  })
  const ready = fate === 'ready'
  const containers = listAt(pod, 'spec.containers').map((container) => containerStatus(container, fate))
  return {
    phase: fate === 'image-pull' ? 'Pending' : 'Running',
    startTime: now,
    conditions: [
      ...['PodScheduled', 'Initialized'].map((type) => is(type, true)),
      ...['ContainersReady', 'Ready'].map((type) => is(type, ready, 'containers are not ready')),
    ],
    initContainerStatuses: listAt(pod, 'spec.initContainers').map((container) => endedStatus(container, said)),
    containerStatuses: containers,
  }
}

function endedStatus(container: unknown, message: string): object {
  const now = new Date().toISOString()
  const terminated = { exitCode: 0, reason: 'Completed', message, startedAt: now, finishedAt: now }
  const [name, image] = ['name', 'image'].map((key) => textAt(container, key))
  return { name, image, imageID: '', ready: true, restartCount: 0, state: { terminated } }
}

function containerStatus(container: unknown, fate: PodFate): object {
  const common = { name: textAt(container, 'name'), image: textAt(container, 'image'), imageID: '' }
  const running = { running: { startedAt: new Date().toISOString() } }
  const waiting = (reason: string): object => ({ waiting: { reason, message: reason } })
  switch (fate) {
    case 'ready':
      return { ...common, ready: true, started: true, restartCount: 0, state: running }
    case 'unready':
      return { ...common, ready: false, started: true, restartCount: 0, state: running }
    case 'image-pull':
      return { ...common, ready: false, started: false, restartCount: 0, state: waiting('ImagePullBackOff') }
    case 'crash-loop': {
      const lastState = { terminated: { exitCode: 1, reason: 'Error' } }
      return { ...common, ready: false, started: false, restartCount: 3, state: waiting('CrashLoopBackOff'), lastState }
    }
  }
}
