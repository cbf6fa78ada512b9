// SPDX-License-Identifier: Apache-2.0
/** An object of the v1 API, which command lines before v3 had, as one of netplane.io/v3. Layer: lib/kube. */
import { formatCidr } from '../../base/ip.ts'
import { asNet, asText, each, FieldError, flag, inside, only, own, record, text, under, type Raw } from '../parse/fields.ts'
import { saidOnly, without } from './metadata.ts'
import { convertPoolSpec } from './pool.ts'
import { convertRules, convertSelector } from './v1-rule.ts'

interface Parts {
  readonly metadata: Raw
  readonly spec: Raw
}

interface Form {
  readonly kind: string
  readonly metadata: readonly string[]
  readonly spec: readonly string[]
  readonly convert: (parts: Parts) => Parts
}

const FORMS: ReadonlyMap<string, Form> = new Map([
  [
    'policy',
    {
      kind: 'GlobalNetworkPolicy',
      metadata: ['name', 'annotations'],
      spec: ['order', 'selector', 'doNotTrack', 'preDNAT', 'applyOnForward', 'types', 'ingress', 'egress'],
      convert: policy,
    },
  ],
  ['profile', { kind: 'Profile', metadata: ['name', 'labels', 'tags'], spec: ['ingress', 'egress'], convert: profile }],
  [
    'hostEndpoint',
    {
      kind: 'HostEndpoint',
      metadata: ['name', 'node', 'labels'],
      spec: ['interfaceName', 'expectedIPs', 'profiles', 'ports'],
      convert: hostEndpoint,
    },
  ],
  ['ipPool', { kind: 'IPPool', metadata: ['cidr'], spec: ['ipip', 'nat-outgoing', 'disabled'], convert: pool }],
])

const REFUSED: ReadonlyMap<string, string> = new Map([
  ['bgpPeer', 'BGP is not supported: nothing is announced'],
  ['node', 'a node is an object of Kubernetes'],
  ['workloadEndpoint', 'agents make endpoints of pods by themselves'],
])

/** Undefined: it is of Kubernetes' own v1. Throws FieldError for what cannot be carried. */
export function convertV1(raw: Raw): Raw | undefined {
  const kind = text(raw, 'kind') ?? ''
  const reason = REFUSED.get(kind)
  if (reason !== undefined) throw new FieldError('kind', reason)
  const form = FORMS.get(kind)
  if (form === undefined) return undefined
  only(raw, ['apiVersion', 'kind', 'metadata', 'spec'])
  const parts = {
    metadata: inside(raw, 'metadata', (metadata) => only(metadata, form.metadata)),
    spec: inside(raw, 'spec', (spec) => only(spec, form.spec)),
  }
  return { apiVersion: 'netplane.io/v3', kind: form.kind, ...form.convert(parts) }
}

function policy({ metadata, spec }: Parts): Parts {
  const converted = under('spec', () => ({
    ...saidOnly({ ...spec, selector: convertSelector(spec, 'selector'), ...rules(spec) }),
    // these always have been for what passes through as well
    ...(flag(spec, 'doNotTrack') === true || flag(spec, 'preDNAT') === true ? { applyOnForward: true } : {}),
  }))
  // a name of v3 has a tier before its dot
  return { metadata: { ...metadata, name: nameOf(metadata, /[^a-z0-9-]+/g) }, spec: converted }
}

function rules(spec: Raw): Raw {
  return { ingress: convertRules(spec, 'ingress'), egress: convertRules(spec, 'egress') }
}

/** A tag is a label without a value. */
function profile({ metadata, spec }: Parts): Parts {
  const labels = under('metadata', () => record(metadata, 'labels'))
  const tags = under('metadata', () => each(metadata, 'tags', asText))
  const both = tags.findIndex((tag) => own(labels, tag) !== undefined)
  if (both >= 0) throw new FieldError(`metadata.tags[${both}]`, 'is a label as well')
  const labelsToApply = { ...labels, ...Object.fromEntries(tags.map((tag) => [tag, ''])) }
  return {
    metadata: { name: profileName(nameOf(metadata)) },
    spec: under('spec', () => saidOnly({ ...rules(spec), labelsToApply })),
  }
}

/** Of a namespace. */
function profileName(name: string): string {
  return name.replace(/^k8s[_-]ns\./, 'kns.')
}

function hostEndpoint({ metadata, spec }: Parts): Parts {
  const node = under('metadata', () => needed(metadata, 'node'))
  const profiles = under('spec', () => each(spec, 'profiles', (name) => profileName(asText(name))))
  return {
    metadata: { ...without(metadata, 'node'), name: `${asName(node)}.${nameOf(metadata)}` },
    spec: saidOnly({ ...spec, node: node.toLowerCase(), profiles }),
  }
}

function pool({ metadata, spec }: Parts): Parts {
  const cidr = under('metadata.cidr', () => formatCidr(asNet(own(metadata, 'cidr'))))
  return { metadata: { name: cidr.replace(/[.:/]+/g, '-') }, spec: under('spec', () => ({ cidr, ...convertPoolSpec(spec) })) }
}

function nameOf(metadata: Raw, refused: RegExp = OTHERS): string {
  return asName(
    under('metadata', () => needed(metadata, 'name')),
    refused,
  )
}

const OTHERS = /[^a-z0-9.-]+/g

/** Names of v3 have no other letters. */
function asName(name: string, refused = OTHERS): string {
  return name
    .toLowerCase()
    .replace(refused, '-')
    .replace(/^[-.]+|[-.]+$/g, '')
}

function needed(raw: Raw, key: string): string {
  const value = text(raw, key) ?? ''
  if (value === '') throw new FieldError(key, 'is missing')
  return value
}
