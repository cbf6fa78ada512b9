// SPDX-License-Identifier: Apache-2.0
/** deploy/manifests: what is applied where there is no operator, as the renderer prints it. Layer: scripts. */
import { dump } from 'js-yaml'
import { packageVersion } from '#lib/base/os/package.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { imageOf } from '#lib/render/image.ts'
import type { CniType } from '#lib/render/providers.ts'
import { OPERATOR, renderOperator } from '#lib/render/operator-pod.ts'
import { renderNamespace, renderNode } from '#lib/render/render.ts'
import type { VARIANTS } from '#lib/kube/schema/installation.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { allDefinitions, definitions } from '#lib/render/definitions.ts'
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

/** All kinds, for an operator that is to come. It keeps them as they are in its own version. */
export function operatorCrdsPage(): string {
  return yamlPage(allDefinitions(felixSchema()))
}

/** The operator with its namespace; what it is to install is in another file. */
export function operatorPage(): string {
  const namespace = OPERATOR
  const image = `netplane:${packageVersion()}`
  return yamlPage([renderNamespace(namespace), ...renderOperator({ namespace, image, nameservers: [] })])
}

/** An Installation with its product and its data plane: every other field is chosen by what the cluster is. */
export function customResourcesPage(variant: (typeof VARIANTS)[number], labels: Readonly<Record<string, string>> = {}): string {
  const metadata = { name: 'default', ...(Object.keys(labels).length === 0 ? {} : { labels }) }
  return yamlPage([
    {
      apiVersion: 'operator.netplane.io/v1',
      kind: 'Installation',
      metadata,
      spec: { variant, netplaneNetwork: { linuxDataplane: 'BPF' } },
    },
  ])
}
