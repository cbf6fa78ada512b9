// SPDX-License-Identifier: Apache-2.0
/** Kinds as OpenShift defines them, as far as the operator sets them. Layer: test. */
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'

const FLAGS = ['allowHostDirVolumePlugin', 'allowHostIPC', 'allowHostNetwork', 'allowHostPID', 'allowHostPorts']
const MORE_FLAGS = ['allowPrivilegedContainer', 'readOnlyRootFilesystem']
const LISTS = ['allowedCapabilities', 'defaultAddCapabilities', 'requiredDropCapabilities', 'volumes']
const STRATEGIES = ['runAsUser', 'seLinuxContext', 'fsGroup', 'supplementalGroups']

const flag = { type: 'boolean' }
const texts = { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'atomic', nullable: true }

function all(names: readonly string[], schema: object): object {
  return Object.fromEntries(names.map((name) => [name, schema]))
}

export function constraintsDefinition(): ApiObject {
  const [group, plural] = ['security.openshift.io', 'securitycontextconstraints']
  const openAPIV3Schema = {
    type: 'object',
    required: [...FLAGS, ...MORE_FLAGS, ...LISTS, 'priority'],
    properties: {
      ...all([...FLAGS, ...MORE_FLAGS, 'allowPrivilegeEscalation'], flag),
      ...all([...LISTS, 'users', 'groups', 'seccompProfiles'], texts),
      ...all(STRATEGIES, { type: 'object', nullable: true, properties: { type: { type: 'string' } } }),
      priority: { type: 'integer', format: 'int32', nullable: true },
    },
  }
  return asApiObject({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, annotations: { 'api-approved.openshift.io': 'https://github.com/openshift/api/pull/470' } },
    spec: {
      group,
      names: { kind: 'SecurityContextConstraints', listKind: 'SecurityContextConstraintsList', plural, singular: plural },
      scope: 'Cluster',
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  })
}

/** By which its own operator is told whether kube-proxy is to run. */
export function networkDefinition(): ApiObject {
  const [group, plural] = ['operator.openshift.io', 'networks']
  const spec = { type: 'object', properties: { deployKubeProxy: flag } }
  const openAPIV3Schema = { type: 'object', properties: { spec } }
  return asApiObject({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      names: { kind: 'Network', listKind: 'NetworkList', plural, singular: 'network' },
      scope: 'Cluster',
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  })
}
