// SPDX-License-Identifier: Apache-2.0
/** Annotations by which pods and namespaces ask for addresses, as they are written: what they mean is lib/ipam's.
 * Layer: lib/kube. */
import type { Labels } from '../../model/labels.ts'
import { inside, text } from './fields.ts'
import type { ParseInput } from './fields.ts'

const PREFIX = 'cni.netplane.io/'

/** Nothing where there are none, which is most often. */
export function ipAnnotationsOf(input: ParseInput): { readonly wishes?: Labels } {
  return inside(input.raw, 'metadata', (metadata) =>
    inside(metadata, 'annotations', (annotations) => {
      const keys = Object.keys(annotations).filter((key) => key.startsWith(PREFIX))
      return keys.length === 0 ? {} : { wishes: new Map(keys.sort().map((key) => [key, text(annotations, key) ?? ''])) }
    }),
  )
}
