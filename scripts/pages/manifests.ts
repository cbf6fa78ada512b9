// SPDX-License-Identifier: Apache-2.0
/** deploy/manifests: what is applied where there is no operator, as the renderer prints it. Layer: scripts. */
import { dump } from 'js-yaml'
import { packageVersion } from '#lib/base/os/package.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { imageOf } from '#lib/render/image.ts'
import type { CniType } from '#lib/render/providers.ts'
import { renderNode } from '#lib/render/render.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { definitions } from '#lib/render/definitions.ts'
import { felixSchema } from '#agent/config/open-api.ts'

const NAMESPACE = 'kube-system'

/** Definitions, rights, agents. */
export function nodeManifestPage(cni: CniType): string {
  const spec = installationSpec.read({ cni: { type: cni }, netplaneNetwork: { linuxDataplane: 'BPF' } })
  const computed = computeInstallation(spec, { provider: 'Generic', hasKubeProxy: false, isFresh: true })
  const objects = renderNode({ namespace: NAMESPACE, image: imageOf(computed, packageVersion()), computed, endpoint: undefined })
  return yamlPage([...definitions(felixSchema()), ...objects])
}

export function yamlPage(objects: readonly unknown[]): string {
  const documents = objects.map((object) => dump(object, { lineWidth: 140, noRefs: true }))
  return `# Made by scripts/generate-docs.ts from lib/render: change it there.\n---\n${documents.join('---\n')}`
}
