// SPDX-License-Identifier: Apache-2.0
/** Names of images. Layer: lib/render (pure). */
import type { Computed } from './computed.ts'

const NAMES = { Netplane: 'netplane', NetplaneEnterprise: 'netplane-enterprise' } as const

/** "registry.example.com/path/netplane:3.31.5" */
export function imageOf({ registry, imagePath, variant }: Pick<Computed, 'registry' | 'imagePath' | 'variant'>, version: string): string {
  return [registry.replace(/\/$/, ''), imagePath.replace(/^\/|\/$/g, ''), `${NAMES[variant]}:${version}`]
    .filter((part) => part !== '')
    .join('/')
}

/** The operator is the same program for every variant. */
export function operatorImageOf(from: Pick<Computed, 'registry' | 'imagePath'>, version: string): string {
  return imageOf({ ...from, variant: 'Netplane' }, version)
}
