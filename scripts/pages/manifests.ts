// SPDX-License-Identifier: Apache-2.0
/** deploy/manifests: what is applied where there is no operator, as the renderer prints it. Layer: scripts. */
import { dump } from 'js-yaml'
import { packageVersion } from '#lib/base/os/package.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { renderCleanup } from '#lib/render/cleanup-pod.ts'
import { imageOf, operatorImageOf } from '#lib/render/image.ts'
import { MANIFEST_CONTENTS, type Manifest } from '#lib/render/manifests.ts'
import { OPERATOR, OPERATOR_PODS, renderOperator } from '#lib/render/operator-pod.ts'
import { renderInstallation, renderNamespace } from '#lib/render/render.ts'
import type { VARIANTS } from '#lib/kube/schema/installation.ts'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { allDefinitions, definitions, madeBy, userRoles } from '#lib/render/definitions.ts'
import { felixSchema } from '#agent/config/open-api.ts'

const NAMESPACE = 'kube-system'

type Variant = (typeof VARIANTS)[number]

/** Definitions, rights, agents, controllers. */
export function nodeManifestPage(manifest: Manifest): string {
  const installed = renderInstallation({ ...inputOf(manifest), endpoint: undefined })
  return yamlPage([...marked(definitions(felixSchema())), ...userRoles(), ...installed])
}

function marked(all: readonly object[]): readonly object[] {
  return all.map((definition) => madeBy(definition, packageVersion()))
}

/** What takes any of them off the nodes. */
export function cleanupPage(): string {
  return yamlPage(renderCleanup(inputOf('netplane')))
}

function inputOf(manifest: Manifest) {
  const { cni, linuxDataplane, settings } = MANIFEST_CONTENTS[manifest]
  const spec = installationSpec.read({ cni: { type: cni }, netplaneNetwork: { linuxDataplane } })
  const computed = computeInstallation(spec, { provider: 'Generic', hasKubeProxy: false, installed: undefined })
  return { namespace: NAMESPACE, image: imageOf(computed, packageVersion()), computed, settings }
}

export function yamlPage(objects: readonly unknown[]): string {
  const documents = objects.map((object) => dump(object, { lineWidth: 140, noRefs: true }))
  return `# Made by scripts/generate-docs.ts from lib/render: change it there.\n---\n${documents.join('---\n')}`
}

/** All kinds, for an operator that is to come. It keeps them as they are in its own version. */
export function operatorCrdsPage(): string {
  return yamlPage(marked(allDefinitions(felixSchema())))
}

/** The operator with its namespace; what it is to install is in another file. */
export function operatorPage(): string {
  const namespace = OPERATOR
  const image = operatorImageOf({ registry: '', imagePath: '' }, packageVersion())
  return yamlPage([renderNamespace(namespace), ...renderOperator({ namespace, image, pods: OPERATOR_PODS })])
}

/** An Installation with its product and its data plane: every other field is chosen by what the cluster is. */
export function customResourcesPage(variant: Variant, labels: Readonly<Record<string, string>> = {}): string {
  return yamlPage([installationObject(Object.keys(labels).length === 0 ? {} : { labels }, usualSpec(variant))])
}

/** What has to be said. */
export function usualSpec(variant: Variant): object {
  return { variant, netplaneNetwork: { linuxDataplane: 'BPF' } }
}

export function installationObject(metadata: object, spec: unknown): object {
  return { apiVersion: 'operator.netplane.io/v1', kind: 'Installation', metadata: { name: 'default', ...metadata }, spec }
}
