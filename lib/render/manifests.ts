// SPDX-License-Identifier: Apache-2.0
/** The manifests of an installation without an operator, which exclude one another. Layer: lib/render (pure). */
import type { CniType } from './providers.ts'

export const MANIFESTS = ['netplane', 'netplane-local', 'netplane-chained', 'netplane-policy-only'] as const
/** Name of a file in deploy/manifests. */
export type Manifest = (typeof MANIFESTS)[number]

/** What it says of an Installation, and settings that are its own. */
export interface ManifestContent {
  readonly cni: CniType
  readonly linuxDataplane: 'BPF' | 'Standard'
  readonly settings: Readonly<Record<string, string>>
}

export const MANIFEST_CONTENTS: Readonly<Record<Manifest, ManifestContent>> = {
  netplane: { cni: 'Netplane', linuxDataplane: 'BPF', settings: {} },
  'netplane-local': { cni: 'Local', linuxDataplane: 'BPF', settings: {} },
  'netplane-chained': { cni: 'Chained', linuxDataplane: 'BPF', settings: {} },
  // kube-proxy stays, whatever FelixConfiguration says
  'netplane-policy-only': { cni: 'None', linuxDataplane: 'Standard', settings: { bpfEnabled: 'false' } },
}
