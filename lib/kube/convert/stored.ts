// SPDX-License-Identifier: Apache-2.0
/** An object as versions up to v3.30 stored it, of crd.netplane.io/v1, as one of netplane.io/v3. Layer: lib/kube. */
import { FieldError, inside, only, record, text, under, type Raw } from '../parse/fields.ts'
import { namesIn } from '../parse/parse-object.ts'
import { carriedMetadata, saidOnly, without } from './metadata.ts'
import { convertPoolSpec } from './pool.ts'

/** The metadata that the API showed, as JSON. */
const METADATA = 'netplane.io/metadata'

/** They are stored by the names of their tier and their own. */
const TIERED = new Set(['NetworkPolicy', 'GlobalNetworkPolicy', 'StagedNetworkPolicy', 'StagedGlobalNetworkPolicy'])

const RENAMED: ReadonlyMap<string, string> = new Map([['KubeControllersConfiguration', 'ControllersConfiguration']])

const NO_BGP = 'BGP is not supported: nothing is announced'
const NO_ADDRESSES = 'addresses that are given away are known to their cluster alone'
const REFUSED: ReadonlyMap<string, string> = new Map([
  ...['BGPConfiguration', 'BGPFilter', 'BGPPeer'].map((kind) => [kind, NO_BGP] as const),
  ...['BlockAffinity', 'IPAMBlock', 'IPAMConfig', 'IPAMHandle'].map((kind) => [kind, NO_ADDRESSES] as const),
])

/** Throws FieldError for what cannot be carried. */
export function convertStored(raw: Raw): Raw {
  only(raw, ['apiVersion', 'kind', 'metadata', 'spec', 'status'])
  const stored = text(raw, 'kind') ?? ''
  const reason = REFUSED.get(stored)
  if (reason !== undefined) throw new FieldError('kind', reason)
  const outer = carriedMetadata(raw)
  const inner = annotated(outer)
  const { name } = namesIn(raw)
  const metadata = saidOnly({
    ...outer,
    labels: { ...record(outer, 'labels'), ...record(inner, 'labels') },
    annotations: without({ ...record(outer, 'annotations'), ...record(inner, 'annotations') }, METADATA),
  })
  const as = { apiVersion: 'netplane.io/v3', kind: RENAMED.get(stored) ?? stored, metadata }
  const spec = record(raw, 'spec')
  if (TIERED.has(stored)) return { ...as, ...tiered({ name, shown: text(inner, 'name') || undefined, metadata, spec }) }
  return { ...as, spec: stored === 'IPPool' ? inside(raw, 'spec', convertPoolSpec) : spec }
}

/** Empty: the object was written by hand. */
function annotated(metadata: Raw): Raw {
  const json = inside(metadata, 'annotations', (annotations) => text(annotations, METADATA))
  return json === undefined ? {} : under(`metadata.annotations['${METADATA}']`, () => carriedMetadata({ metadata: parsed(json) }))
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    throw new FieldError('', 'is not JSON')
  }
}

interface Tiered {
  /** as it is stored */
  readonly name: string
  /** as it was made; undefined: versions up to v3.28 kept none, and put the tier before all names of the default one */
  readonly shown: string | undefined
  readonly metadata: Raw
  readonly spec: Raw
}

function tiered({ name, shown, metadata, spec }: Tiered): Pick<Raw, 'metadata' | 'spec'> {
  if (name.startsWith('knp.')) throw new FieldError('metadata.name', 'is made of a policy of Kubernetes, which has it')
  const prefix = /^([^.]+)\../.exec(name)?.[1] ?? 'default'
  const tier = under('spec', () => text(spec, 'tier')) || prefix
  const rest = without(spec, 'tier')
  if (tier !== 'default') return { metadata: { ...metadata, name: shown ?? name }, spec: { ...rest, tier } }
  return { metadata: { ...metadata, name: shown ?? name.replace(/^default\./, '') }, spec: rest }
}
