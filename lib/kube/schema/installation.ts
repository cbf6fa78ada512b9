// SPDX-License-Identifier: Apache-2.0
/** Shapes of the resources that an administrator gives the operator, operator.netplane.io/v1. Layer: lib/kube. */
import { field, listed, object, required, type Shape } from './shape.ts'
import { cidr, flag, integer, matching, name, text, texts, word } from './primitives.ts'
import { formatCidr, tryParseAddr, type Cidr } from '../../base/ip.ts'
import { FieldError } from '../parse/fields.ts'
import type { Json } from '../../model/felix-configuration.ts'
import { plainJson } from '../parse/felix-configuration.ts'

export const VARIANTS = ['Netplane', 'NetplaneEnterprise'] as const
export const DATAPLANES = ['Standard', 'BPF'] as const
export const CNI_TYPES = ['Netplane', 'Local', 'Chained', 'None'] as const
/** Platforms that differ in something the operator renders, checks or patches. */
export const PROVIDERS = ['Generic', 'KOPS', 'OpenShift', 'AKS', 'EKS', 'MKE', 'RKE2'] as const

const switched = word('Enabled', 'Disabled')
const path = matching(/^\/([^/\0]+\/?)*$/, 'must be an absolute path')

/** Part of an object of Kubernetes, which its API server checks when it is rendered. */
const kubernetesObject: Shape<Readonly<Record<string, Json>>> = {
  read: (value) => plainJson(value, ''),
  schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
}

const NUMBER_OR_PERCENT = 'must be a number of nodes from 1, or a percentage like 10%'

/** A number of nodes, or a part of all: "10%". */
const numberOrPercent: Shape<number | string> = {
  read: (value) => {
    if (typeof value === 'number' && Number.isInteger(value) && value >= 1) return value
    if (typeof value === 'string' && /^([1-9][0-9]?|100)%$/.test(value)) return value
    throw new FieldError('', NUMBER_OR_PERCENT)
  },
  schema: {
    'x-kubernetes-int-or-string': true,
    'x-kubernetes-validations': [
      {
        rule: "type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",
        message: NUMBER_OR_PERCENT,
        messageExpression: `"${NUMBER_OR_PERCENT}; it is " + (type(self) == int ? string(self) : "'" + self + "'")`,
      },
    ],
  },
}

const duration = matching(/^([0-9]{1,9}(s|m|h))+$/, 'must be a duration like 24h or 90m')

const FIRST_ADDRESS = 'must begin with the first address of the range'

/** A prefix that says no more than it is: of 10.1.0.5/24 it is not known whether the range or the length is meant. */
const range: Shape<Cidr> = {
  read: (value) => {
    const read = cidr.read(value)
    const [address = ''] = String(value).split('/')
    if (tryParseAddr(address) !== read.addr) throw new FieldError('', `${FIRST_ADDRESS}, as ${formatCidr(read)}`)
    return read
  },
  schema: {
    ...cidr.schema,
    'x-kubernetes-validations': [
      {
        // of what is no prefix the patterns tell
        rule: '!isCIDR(self) || cidr(self) == cidr(self).masked()',
        message: FIRST_ADDRESS,
      },
    ],
  },
}

const podOverrides = object({
  resources: field('What its containers ask for and may have, as in a pod.', kubernetesObject),
  tolerations: listed('Taints that it does not mind, beside those that it must not mind.', kubernetesObject, { most: 64 }),
  nodeSelector: field('Labels that its nodes must have, beside its own.', texts),
  annotations: field('Annotations of its pods.', texts),
})

const pool = object({
  name: field('Its name; made of its range when it is missing.', name),
  cidr: required('The addresses. A pool that has this range already is adopted as it is.', range),
  encapsulation: field(
    'How packets between nodes travel: in the tunnel to nodes beyond a router only, always, or never.',
    word('VXLANCrossSubnet', 'VXLAN', 'None'),
  ),
  natOutgoing: field('Whether flows to the outside leave with the address of their node.', switched),
  blockSize: field('Prefix length of the blocks that nodes take from it.', integer(20, 128)),
  nodeSelector: field('Nodes that may take from it, by their labels.', text),
})

const network = object({
  linuxDataplane: field('Standard: kube-proxy has the services. BPF: all services are ours.', word(...DATAPLANES)),
  hostPorts: field('Enabled: pods may have ports of their nodes. Disabled: none is served.', switched),
  flexVolumePath: field(
    'Accepted without effect: no driver is installed.',
    matching(/^(None|\/([^/\0]+\/?)*)$/, 'must be an absolute path or None'),
  ),
  ipPools: listed('Pools that are made once; they stay when the Installation goes.', pool, { most: 25 }),
  mtu: field("MTU of pods' devices; found out by each node when it is missing.", integer(576, 65_535)),
  kubeProxyManagement: field('Whether the operator stops and starts kube-proxy as the data plane needs it.', switched),
})

export const installationSpec = object({
  variant: field('Which product; it stays as it was made.', word(...VARIANTS)),
  registry: field(
    'Where images come from: "registry.example.com:5000".',
    matching(/^[a-zA-Z0-9.-]+(:[0-9]+)?\/?$/, 'must be a host, with a port or without'),
  ),
  imagePath: field('Path of the images in the registry.', matching(/^[a-z0-9._/-]*$/, 'must be a path of an image')),
  imagePullSecrets: listed(
    "Secrets of the operator's namespace that images are pulled with; the operator copies them to netplane-system.",
    object({ name: required('Its name.', name) }),
    { most: 16 },
  ),
  provider: field('Kind of platform; found out when it is missing.', word(...PROVIDERS)),
  cni: field(
    'Who gives pods their network.',
    object({
      type: field(
        'Netplane: we do. Local: we do, and another program makes the ways between nodes. Chained: another plugin does, and we have services and policy. None: policy alone.',
        word(...CNI_TYPES),
      ),
      binDir: field('Folder of plugins on the nodes.', path),
      confDir: field('Folder of network configurations on the nodes.', path),
    }),
  ),
  netplaneNetwork: field('Settings of the network.', network),
  nodeUpdateStrategy: field(
    'How nodes are changed.',
    object({
      maxUnavailable: field('How many nodes change at a time; 1 when it is missing.', numberOrPercent),
      canary: field('Node that changes first, alone.', name),
      nodeTimeout: field(
        'How long a node is waited for that is not ready, does not prove itself, or is not clean at a removal; 10m when it is missing.',
        duration,
      ),
    }),
  ),
  nodePods: field('Of the pods that run on every node.', podOverrides),
  controllerPods: field('Of the pods of the controllers.', podOverrides),
})

const retention = object({
  time: field('How long records are kept.', duration),
  size: field('How much they may take.', matching(/^[0-9]{1,9}(Mi|Gi|Ti)$/, 'must be a size like 10Gi')),
})

export const flowAggregatorSpec = object({
  retention: field('How much is remembered.', retention),
  storage: field('Where records are: a volume claim, as in Kubernetes; memory of the node when it is missing.', kubernetesObject),
  emitter: field(
    'A console that is told of every flow.',
    object({
      url: required('Where it is, by HTTPS.', matching(/^https:\/\/[^\s]+$/, 'must be an https:// address')),
      ca: field("Secret with the certificate that signs the console's, in key ca.crt.", name),
    }),
  ),
  otlp: field(
    'A collector of OpenTelemetry.',
    object({ endpoint: required('Its address, with port.', text), insecure: field('Whether it is asked without TLS.', flag) }),
  ),
  resources: field('What its container asks for and may have.', kubernetesObject),
})

export const flowUiSpec = object({ resources: field('What its container asks for and may have.', kubernetesObject) })
