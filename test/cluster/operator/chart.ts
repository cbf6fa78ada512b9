// SPDX-License-Identifier: Apache-2.0
/** What an administrator does with deploy/chart and Helm, as docs/operator.md has it, without our own command line.
 * Layer: test. */
import { join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'
import { fieldsOf } from '#lib/base/object.ts'
import { helmPrograms } from '../../../testkit/kubernetes/build/helm.ts'
import type { Cluster } from '../../../testkit/kubernetes/cluster.ts'
import { OPERATOR } from './installed.ts'

const RELEASE = 'netplane'
const CHART = join(packageRoot(), 'deploy/chart')

/** `host`: by which the operator finds the API server. */
export async function installChart(cluster: Cluster, host: string, installation: object): Promise<void> {
  await cluster.kubectl(['create', 'namespace', OPERATOR])
  await cluster.kubectl(['label', 'namespace', OPERATOR, 'pod-security.kubernetes.io/enforce=privileged'])
  const clusterServicesEndpoint = { host, port: String(cluster.endpoint.port) }
  const values = { clusterServicesEndpoint, installation: fieldsOf(fieldsOf(installation)['spec']) }
  await helm(cluster, ['install', RELEASE, CHART, '--values', '-'], JSON.stringify(values))
}

/** Resolves when it says that all is gone. */
export async function uninstallChart(cluster: Cluster): Promise<void> {
  await helm(cluster, ['uninstall', RELEASE, '--timeout', '150s'])
}

/** The newest. */
async function helm(cluster: Cluster, args: readonly string[], input = ''): Promise<void> {
  const { v4 } = await helmPrograms()
  const line = ['env', `HOME=${cluster.folder}`, v4, '--kubeconfig', cluster.plane.kubeconfig, '--namespace', OPERATOR, ...args]
  await cluster.lab.mustRun('fabric', line, { input, timeoutMs: 170_000 })
}
