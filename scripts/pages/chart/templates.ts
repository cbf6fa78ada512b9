// SPDX-License-Identifier: Apache-2.0
/** The templates of the chart: objects as the renderer makes them, with values of the chart in their places.
 * Layer: scripts. */
import { dump } from 'js-yaml'
import type { ApiObject } from '#lib/api/resource.ts'
import { endpointMap } from '#lib/render/input.ts'
import { OPERATOR_PODS, renderOperator, type OperatorInput } from '#lib/render/operator-pod.ts'
import { renderRemoval } from '#lib/render/removal-job.ts'
import { installationObject } from '../manifests.ts'

const MADE_BY = '{{- /* Made by scripts/generate-docs.ts from scripts/pages/chart: change it there. */ -}}\n'

/** As lib/render/image.ts puts it together, and the chart's version where no value has one. */
const IMAGE = [
  '{{ with .Values.netplaneOperator.registry }}{{ trimSuffix "/" . }}/{{ end }}',
  '{{ .Values.netplaneOperator.image }}:{{ default .Chart.AppVersion .Values.netplaneOperator.version }}',
].join('')

const INPUT: OperatorInput = {
  namespace: '{{ .Release.Namespace }}',
  image: IMAGE,
  pods: Object.fromEntries(Object.keys(OPERATOR_PODS).map((name) => [name, `{{ .Values.${name} }}`])) as OperatorInput['pods'],
}

export function operatorTemplate(): string {
  return MADE_BY + templateOf(renderOperator(INPUT))
}

/** Before anything else of a release is deleted. A hook that failed stays to be looked at, until the next try. */
export function removalTemplate(): string {
  const hooked = (object: ApiObject): ApiObject => {
    const annotations = {
      'helm.sh/hook': 'pre-delete',
      'helm.sh/hook-delete-policy': 'before-hook-creation,hook-succeeded',
      // what the Job needs comes before it
      'helm.sh/hook-weight': object.kind === 'Job' ? '1' : '0',
    }
    return { ...object, metadata: { ...object.metadata, annotations } }
  }
  return MADE_BY + templateOf(renderRemoval({ ...INPUT, timeout: '{{ .Values.uninstallTimeout }}' }).map(hooked))
}

export function endpointTemplate(): string {
  const { host, port } = { host: '{{ .host }}', port: '{{ required "clusterServicesEndpoint.port is missing" .port }}' }
  const map = templateOf([endpointMap(INPUT.namespace.replace('.Release', '$.Release'), { host, port })])
  return `${MADE_BY}{{- with .Values.clusterServicesEndpoint }}\n{{- if .host }}\n${map}{{- end }}\n{{- end }}\n`
}

/** It is deleted by the hook alone: a release that no longer has it does not take the network away. */
export function installationTemplate(): string {
  const installation = installationObject(
    { annotations: { 'helm.sh/resource-policy': 'keep' } },
    '{{ omit .Values.installation "enabled" }}',
  )
  return `${MADE_BY}{{- if .Values.installation.enabled }}\n${templateOf([installation])}{{- end }}\n`
}

function templateOf(objects: readonly object[]): string {
  return objects.map((object) => withValues(dump(object, { lineWidth: -1, noRefs: true }))).join('---\n')
}

/** A whole value of the chart, or a part of one: `{{ .Values.resources }}`. */
const VALUE = /^( *)(\w+): '\{\{ (\.Values\.\w+|omit .*) \}\}'$/

/** Such a field is left out where the value is empty. */
function withValues(yaml: string): string {
  const lines = yaml.split('\n').flatMap((line) => {
    const [, indent = '', key = '', value] = VALUE.exec(line) ?? []
    if (value === undefined) return [line]
    const block = [`{{- with ${value} }}`, `${key}:`, `  {{- toYaml . | nindent ${indent.length + 2} }}`, '{{- end }}']
    return block.map((part) => indent + part)
  })
  return lines.join('\n')
}
