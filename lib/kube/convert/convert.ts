// SPDX-License-Identifier: Apache-2.0
/** Objects of other and older forms as those of netplane.io/v3. Layer: lib/kube. */
import type { Schema } from '../../base/schema.ts'
import { own, type Raw } from '../parse/fields.ts'
import { canonical } from './canonical.ts'
import { convertNetworkPolicy } from './network-policy.ts'
import { convertStored } from './stored.ts'
import { convertV1 } from './v1-api.ts'

/** The schema of a kind's spec. */
type SpecSchemas = ReadonlyMap<unknown, Schema>

/** What is of none of these forms stays as it is. Throws FieldError for what cannot be carried. */
export function convert(raw: Raw, schemas: SpecSchemas): Raw {
  switch (own(raw, 'apiVersion')) {
    case 'networking.k8s.io/v1':
      return raw['kind'] === 'NetworkPolicy' ? convertNetworkPolicy(raw) : raw
    case 'crd.netplane.io/v1':
      return inWords(convertStored(raw), schemas)
    case 'v1': {
      const converted = convertV1(raw)
      return converted === undefined ? raw : inWords(converted, schemas)
    }
    default:
      return raw
  }
}

function inWords(raw: Raw, schemas: SpecSchemas): Raw {
  return { ...raw, spec: canonical(raw['spec'], schemas.get(raw['kind'])) }
}
