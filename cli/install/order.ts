// SPDX-License-Identifier: Apache-2.0
/** Arguments of `install …`. Layer: cli (pure). */
import { ConfigError } from '#lib/base/errors.ts'
import { FieldError } from '#lib/kube/parse/fields.ts'
import { installationSpec, PROVIDERS, VARIANTS } from '#lib/kube/schema/installation.ts'
import { OPERATOR } from '#lib/render/operator-pod.ts'
import type { Provider } from '#lib/render/providers.ts'
import type { QuestionCommand } from '../commands.ts'
import { secondsOf, type Flag, type Given } from '../given.ts'
import { ALLOW_MISMATCH, CONNECTION_FLAGS } from '../resources/commands.ts'
import { connectionOf, type ConnectionFlags } from '../resources/order.ts'

/** Which cluster, and whether it may be newer than this program. */
export interface ClusterChoice {
  readonly connection: ConnectionFlags
  readonly allowMismatch: boolean
}

export const CLUSTER_FLAGS: readonly Flag[] = [...CONNECTION_FLAGS, ALLOW_MISMATCH]

export function clusterChoice(given: Given): ClusterChoice {
  return { connection: connectionOf(given), allowMismatch: given.has('allow-version-mismatch') }
}

interface Step extends ClusterChoice {
  /** undefined: as the cluster shows */
  readonly platform: Provider | undefined
  readonly namespace: string
  readonly apply: boolean
  readonly json: boolean
}

export interface EndpointOrder extends Step {
  readonly kind: 'install endpoint'
  readonly check: boolean
}

export interface DnsOrder extends Step {
  readonly kind: 'install dns'
}

export interface ImagesOrder {
  readonly kind: 'install images'
  /** with an Installation; undefined: what the fields of `spec` say */
  readonly file: string | undefined
  readonly spec: Readonly<Record<string, string>>
  readonly json: boolean
}

export interface CheckOrder extends ClusterChoice {
  readonly kind: 'install check'
  /** with an Installation; undefined: the cluster's, or one without wishes */
  readonly file: string | undefined
  readonly namespace: string
  readonly timeoutMs: number
  readonly json: boolean
}

export interface RemoveOrder extends ClusterChoice {
  readonly kind: 'install remove'
  readonly namespace: string
  readonly timeoutMs: number
  readonly withoutOperator: boolean
}

export type InstallOrder = EndpointOrder | DnsOrder | ImagesOrder | CheckOrder | RemoveOrder

const CHECK_SECONDS = 120
const REMOVE_SECONDS = 300

/** Fields of an Installation that say which image, by flag. */
const IMAGE_FLAGS = { registry: 'registry', 'image-path': 'imagePath', variant: 'variant' } as const

const NAMESPACE: Flag = { name: 'namespace', value: 'NAME', about: `of the operator (default: ${OPERATOR})` }

const STEP: readonly Flag[] = [
  ...CLUSTER_FLAGS,
  { name: 'platform', value: 'CLASS', about: `${PROVIDERS.join(', ')} (default: as version and nodes of the cluster show)` },
  NAMESPACE,
]

export const installCommands: readonly (QuestionCommand & { readonly name: InstallOrder['kind'] })[] = [
  {
    name: 'install endpoint',
    about: 'the config map with the direct address of the API server, found by the platform and checked from here',
    words: '',
    flags: [
      ...STEP,
      { name: 'apply', about: 'applies it, with its namespace where there is none; else it is printed' },
      { name: 'no-check', about: 'does not ask the address' },
    ],
  },
  {
    name: 'install dns',
    about: "the patch that gives the operator a cloud's name server, where the platform needs one",
    words: '',
    flags: [...STEP, { name: 'apply', about: 'applies it; else it is printed' }],
  },
  {
    name: 'install images',
    about: 'every image that an Installation needs, one a line; asks no cluster',
    words: '',
    flags: [
      { name: 'file', short: 'f', value: 'FILE', about: 'manifests with the Installation, as custom-resources.yaml' },
      { name: 'registry', value: 'HOST', about: 'of an Installation without a file' },
      { name: 'image-path', value: 'PATH', about: 'path of the images in the registry' },
      { name: 'variant', value: 'NAME', about: VARIANTS.join(', ') },
    ],
  },
  {
    name: 'install check',
    about: 'what is in the way of an installation, of every node and of the cluster; exit code 1 if something is',
    words: '',
    flags: [
      ...CLUSTER_FLAGS,
      { name: 'file', short: 'f', value: 'FILE', about: "manifests with the Installation (default: the cluster's, else one of BPF mode)" },
      NAMESPACE,
      { name: 'timeout', value: 'SECONDS', about: `for nodes to answer (default: ${CHECK_SECONDS})` },
    ],
  },
  {
    name: 'install remove',
    about: 'deletes the Installation, and waits until its nodes are clean',
    words: '',
    flags: [
      ...CLUSTER_FLAGS,
      NAMESPACE,
      { name: 'timeout', value: 'SECONDS', about: `to wait (default: ${REMOVE_SECONDS})` },
      { name: 'without-operator', about: "does the operator's work itself, where none runs" },
    ],
  },
]

/** Throws ConfigError. */
export function readInstall(kind: InstallOrder['kind'], given: Given): InstallOrder {
  const [word] = given.words
  if (word !== undefined) throw new ConfigError(kind, `${JSON.stringify(word)} is too much`)
  const json = given.has('json')
  if (kind === 'install images') return { kind, file: given.text('file'), spec: imageFields(given), json }
  const cluster = clusterChoice(given)
  const namespace = given.text('namespace') ?? OPERATOR
  if (kind === 'install check')
    return { kind, ...cluster, namespace, file: given.text('file'), timeoutMs: secondsOf(given, CHECK_SECONDS), json }
  if (kind === 'install remove')
    return { kind, ...cluster, namespace, timeoutMs: secondsOf(given, REMOVE_SECONDS), withoutOperator: given.has('without-operator') }
  const step = { ...cluster, platform: platformOf(given.text('platform')), json }
  const more = { namespace, apply: given.has('apply') }
  if (kind === 'install dns') return { kind, ...step, ...more }
  return { kind, ...step, ...more, check: !given.has('no-check') }
}

function imageFields(given: Given): Readonly<Record<string, string>> {
  const fields = Object.entries(IMAGE_FLAGS).flatMap(([flag, field]) => {
    const value = given.text(flag)
    if (value !== undefined && given.has('file')) throw new ConfigError(`--${flag}`, 'is in the file: give one or the other')
    if (value === undefined) return []
    try {
      installationSpec.read({ [field]: value })
    } catch (thrown) {
      if (!(thrown instanceof FieldError)) throw thrown
      throw new ConfigError(`--${flag}`, `${thrown.reason}; it is ${JSON.stringify(value)}`, thrown)
    }
    return [[field, value] as const]
  })
  return Object.fromEntries(fields)
}

function platformOf(text: string | undefined): Provider | undefined {
  if (text === undefined) return undefined
  const found = PROVIDERS.find((provider) => provider.toLowerCase() === text.toLowerCase())
  if (found === undefined) throw new ConfigError('--platform', `${JSON.stringify(text)} is none of ${PROVIDERS.join(', ')}`)
  return found
}
