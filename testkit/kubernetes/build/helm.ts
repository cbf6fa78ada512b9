// SPDX-License-Identifier: Apache-2.0
/** Helm, built from its Go modules once and kept in the cache directory: the chart is for version 4 and version 3.
 * Layer: testkit. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'
import { hostArch } from '../../base/arch.ts'
import { cached, keyOf } from '../../base/cache.ts'
import { runGo } from './go.ts'

/** What helm/go.mod needs. */
const TOOLCHAIN = 'go1.26.11'

/** Which Kubernetes version 3 takes for granted where it asks none; version 4 knows it from what it is linked with. */
const STAMPS = ['chartutil', 'lint/rules']
  .map((of) => `-X helm.sh/helm/v3/pkg/${of}.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/${of}.k8sVersionMinor=34`)
  .join(' ')

export const HELM_VERSIONS = ['v3', 'v4'] as const
export type HelmVersion = (typeof HELM_VERSIONS)[number]

/** The program of each; built when this version of them is not there yet, which takes six CPU minutes. */
export async function helmPrograms(): Promise<Readonly<Record<HelmVersion, string>>> {
  const module = join(packageRoot(), 'testkit/kubernetes/build/helm')
  const sources = ['go.mod', 'go.sum'].map((name) => readFileSync(join(module, name), 'utf8'))
  const folder = await cached(`helm-${keyOf([hostArch(), TOOLCHAIN, STAMPS, ...sources])}`, async (half) => {
    for (const version of HELM_VERSIONS)
      await runGo(module, ['build', '-o', join(half, `helm-${version}`), `helm.sh/helm/${version}/cmd/helm`], {
        toolchain: TOOLCHAIN,
        stamps: STAMPS,
      })
  })
  return { v3: join(folder, 'helm-v3'), v4: join(folder, 'helm-v4') }
}
