// SPDX-License-Identifier: Apache-2.0
/** The spec of an IPPool that may have fields of the v1 API. Layer: lib/kube. */
import { flag, inside, only, own, text, type Raw } from '../parse/fields.ts'
import { without } from './metadata.ts'

/** Stored pools have fields of both forms: either flag is enough. Throws FieldError. */
export function convertPoolSpec(spec: Raw): Raw {
  const isNat = flag(spec, 'nat-outgoing') === true || flag(spec, 'natOutgoing') === true
  const isOldMode = own(spec, 'ipip') !== undefined && own(spec, 'ipipMode') === undefined
  return {
    ...without(spec, 'ipip', 'nat-outgoing'),
    ...(isOldMode ? { ipipMode: inside(spec, 'ipip', modeOf) } : {}),
    ...(isNat ? { natOutgoing: true } : {}),
  }
}

function modeOf(ipip: Raw): string {
  only(ipip, ['enabled', 'mode'])
  if (flag(ipip, 'enabled') !== true) return 'Never'
  const mode = text(ipip, 'mode') ?? 'Always'
  return mode.toLowerCase() === 'cross-subnet' ? 'CrossSubnet' : mode
}
