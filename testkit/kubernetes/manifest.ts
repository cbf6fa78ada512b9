// SPDX-License-Identifier: Apache-2.0
/** deploy/manifests/netplane.yaml by its parts, for clusters whose agents are processes. Layer: testkit. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadAll } from 'js-yaml'
import { asApiObject, type ApiObject } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'

/** Namespace, account and daemon set of agents. */
export const NAMESPACE = 'kube-system'
export const NAME = 'netplane-node'

export const MANIFEST = join(packageRoot(), 'deploy/manifests/netplane.yaml')

export function manifest(): readonly ApiObject[] {
  return loadAll(readFileSync(MANIFEST, 'utf8')).map(asApiObject)
}

/** Is it the definition of a kind of ours? */
export function isDefinition({ kind }: ApiObject): boolean {
  return kind === 'CustomResourceDefinition'
}

/** Is it of the account that agents have? */
export function isRight(object: ApiObject): boolean {
  return !isDefinition(object) && object.kind !== 'DaemonSet'
}

/** As kubectl reads them from standard input. */
export function listOf(objects: readonly ApiObject[]): string {
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects })
}
