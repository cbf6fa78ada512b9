// SPDX-License-Identifier: Apache-2.0
/** Raw Pod → model. Layer: lib/kube. */
import { isV4, protocolNumber } from '../../base/ip.ts'
import type { Addr } from '../../base/ip.ts'
import type { Pod, PodPhase } from '../../model/pod.ts'
import { firstOfEachName } from '../../model/policy.ts'
import type { NamedPort } from '../../model/policy.ts'
import {
  asAddr,
  asRecord,
  each,
  FieldError,
  flag,
  inside,
  NONE,
  oneOf,
  own,
  port,
  protocol,
  record,
  refuseUnder,
  text,
  time,
  under,
  usable,
  usableAddress,
  usableAddresses,
} from './fields.ts'
import type { ParseInput, Raw } from './fields.ts'
import { labelsOf } from './labels.ts'
import { ipAnnotationsOf } from './ip-annotations.ts'

const PHASES: readonly PodPhase[] = ['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown']

export function parsePod(input: ParseInput): Pod {
  const { nodeName, hostNetwork, serviceAccount, ports } = inside(input.raw, 'spec', (spec) => ({
    nodeName: text(spec, 'nodeName') ?? '',
    hostNetwork: flag(spec, 'hostNetwork') ?? false,
    serviceAccount: text(spec, 'serviceAccountName') ?? '',
    ports: namedPorts(spec, input),
  }))
  const status = inside(input.raw, 'status', (raw) => statusOf(raw, refuseUnder(input, 'status')))
  return {
    kind: 'Pod',
    namespace: input.namespace,
    name: input.name,
    nodeName: nodeName === '' ? undefined : input.intern(nodeName),
    hostNetwork,
    ...status,
    terminating: inside(input.raw, 'metadata', (metadata) => text(metadata, 'deletionTimestamp')) !== undefined,
    labels: labelsOf(input),
    serviceAccount: input.intern(serviceAccount === '' ? DEFAULT_SERVICE_ACCOUNT : serviceAccount),
    ports,
    ...uidOf(input),
    ...groupOf(input),
    ...ipAnnotationsOf(input),
  }
}

/** Before a pod has an address, when it was started is no news. */
function statusOf(status: Raw, refuse: (error: FieldError) => void): Pick<Pod, 'podIPs' | 'phase' | 'startedAt'> {
  const podIPs = addresses(status, refuse)
  const phase = oneOf(status, 'phase', { words: PHASES, absent: 'Pending' })
  const startedAt = podIPs.length === 0 ? undefined : time(status, 'startTime')
  return { podIPs, phase, ...(startedAt === undefined ? {} : { startedAt }) }
}

/** What the server shows of a pod of the kubelet's own files has an id of the server's; the kubelet's stands beside
 * it. */
function uidOf({ raw }: ParseInput): Pick<Pod, 'uid'> {
  return inside(raw, 'metadata', (metadata) => {
    const uid = own(record(metadata, 'annotations'), 'kubernetes.io/config.mirror') ?? own(metadata, 'uid')
    return typeof uid === 'string' && uid !== '' ? { uid } : {}
  })
}

/** Of several owners, the controller. */
function groupOf({ raw, shared }: ParseInput): Pick<Pod, 'group'> {
  return inside(raw, 'metadata', (metadata) => {
    const prefix = text(metadata, 'generateName') ?? ''
    const owners = each(metadata, 'ownerReferences', asRecord)
    const by = owners.find((owner) => flag(owner, 'controller') === true) ?? owners[0]
    const owner = by === undefined ? '' : `${text(by, 'kind') ?? ''}/${text(by, 'name') ?? ''}`
    return prefix === '' && owner === '' ? {} : { group: shared.group({ prefix, owner }) }
  })
}

const DEFAULT_SERVICE_ACCOUNT = 'default'

/** An init container stays only as a sidecar: the others have ended when the pod serves. */
function namedPorts(spec: Raw, { intern, shared }: ParseInput): readonly NamedPort[] {
  const sidecars = each(spec, 'initContainers', asRecord).filter((container) => text(container, 'restartPolicy') === 'Always')
  const containers = [...each(spec, 'containers', asRecord), ...sidecars]
  const ports = containers.flatMap((container) =>
    usable(container, 'ports', { read: (value) => namedPort(asRecord(value), intern), refuse: () => undefined }),
  )
  return ports.length === 0 ? NONE : shared.ports(firstOfEachName(ports))
}

function namedPort(raw: Raw, intern: (text: string) => string): NamedPort | undefined {
  const name = text(raw, 'name') ?? ''
  const number = port(raw, 'containerPort')
  return name === '' || number === undefined ? undefined : { name: intern(name), protocol: protocolNumber(protocol(raw)), port: number }
}

/** podIPs, or podIP alone where a hand-written manifest has only that; without those that cannot be read. */
function addresses(status: Raw, refuse: (error: FieldError) => void): readonly Addr[] {
  const single = text(status, 'podIP') ?? ''
  const plural = usableAddresses(status, 'podIPs', {
    read: (value) => {
      const ip = text(asRecord(value), 'ip')
      if (ip === undefined) throw new FieldError('ip', 'is missing')
      return under('ip', () => asAddr(ip))
    },
    refuse,
  })
  const isSingle = single !== '' && each(status, 'podIPs', () => true).length === 0
  const addrs = isSingle ? usableAddress('podIP', single, { read: asAddr, refuse }) : plural
  if (addrs.filter(isV4).length > 1 || addrs.filter((addr) => !isV4(addr)).length > 1)
    throw new FieldError('podIPs', 'must be at most one of each family')
  return addrs.length === 0 ? NONE : addrs
}
