// SPDX-License-Identifier: Apache-2.0
/** deploy/chart, file by file. Layer: scripts. */
import { dump } from 'js-yaml'
import { packageVersion } from '#lib/base/os/package.ts'
import { OLDEST_SERVER } from '#lib/preflight/oldest-server.ts'
import { operatorCrdsPage } from '../manifests.ts'
import { endpointTemplate, installationTemplate, operatorTemplate, removalTemplate } from './templates.ts'
import { valuesPage, valuesSchemaPage } from './values.ts'

/** Path in the chart → text. */
export const CHART = {
  'Chart.yaml': chartPage,
  'values.yaml': valuesPage,
  'values.schema.json': valuesSchemaPage,
  // made by an install alone; later versions are the operator's and the administrator's
  'crds/operator-crds.yaml': operatorCrdsPage,
  'templates/operator.yaml': operatorTemplate,
  'templates/endpoint.yaml': endpointTemplate,
  'templates/installation.yaml': installationTemplate,
  'templates/removal.yaml': removalTemplate,
  'templates/NOTES.txt': notesPage,
} as const

function chartPage(): string {
  const version = packageVersion()
  const chart = {
    apiVersion: 'v2',
    name: 'netplane',
    description: "Netplane's operator, and the Installation that tells it what to install",
    type: 'application',
    version,
    appVersion: version,
    // with whatever a provider appends
    kubeVersion: `>=${OLDEST_SERVER}.0-0`,
  }
  return `# Made by scripts/generate-docs.ts from scripts/pages/chart: change it there.\n${dump(chart, { lineWidth: 140 })}`
}

function notesPage(): string {
  return `{{- if .Values.installation.enabled -}}
Nodes get their network now. What is done, and what is missing:

  kubectl get netplanestatus
{{- else -}}
The operator waits for an Installation: deploy/operator/custom-resources.yaml is one.
{{- end }}

helm uninstall takes Netplane off every node first: the network of pods ends with it. It deletes the Installation and
waits until that is gone, {{ .Values.uninstallTimeout }} s at most. Helm says all the same that the Installation was
kept. With --no-hooks it is kept indeed, and nodes go on with what they run. Definitions, policies, pools and
namespaces stay: "Removing it" of docs/operator.md says how to delete them too.
`
}
