// SPDX-License-Identifier: Apache-2.0
/** By what an automatic host endpoint is recognised, whatever its name. Layer: lib/kube. */

export const CREATED_BY = 'netplane.io/created-by'
export const CONTROLLERS_NAME = 'netplane-controllers'

export function isAutomatic({ metadata }: { readonly metadata: { readonly labels?: Readonly<Record<string, string>> } }): boolean {
  return metadata.labels?.[CREATED_BY] === CONTROLLERS_NAME
}
