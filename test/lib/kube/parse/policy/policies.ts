// SPDX-License-Identifier: Apache-2.0
/** Policies as their parsers give them, as text. Layer: test. */
import { rejectedText } from '#lib/base/result.ts'
import { identify, parseObject } from '#lib/kube/parse/parse-object.ts'
import { policyText } from '#lib/model/policy-text.ts'
import type { Manifest } from '../../../../support/build.ts'

/** The policy, or what stands in for it, and everything that was refused. */
export function read(manifest: Manifest): { readonly policy: readonly string[]; readonly refused: readonly string[] } {
  const identified = identify(manifest)
  if (identified.kind !== 'ours') throw new Error(JSON.stringify(identified))
  const parsed = parseObject(manifest, identified.ref)
  const object = parsed.kind === 'ok' ? parsed.value : parsed.instead
  const refused = parsed.rejected.map((rejected) => rejectedText({ ...rejected, ref: '' }))
  return { policy: object !== undefined && 'subject' in object ? policyText(object) : [], refused }
}
