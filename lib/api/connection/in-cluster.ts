// SPDX-License-Identifier: Apache-2.0
/** The API server as a pod's service account reaches it. Layer: lib/api. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ConfigError } from '../../base/errors.ts'
import { isPort } from '../../base/ip.ts'
import type { ApiServer } from './server.ts'

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

/** The direct address, from the config map. */
const DIRECT = ['CLUSTER_SERVICE_HOST', 'CLUSTER_SERVICE_PORT'] as const
/** The service's own address, which a service proxy has to serve. */
const SERVICE = ['KUBERNETES_SERVICE_HOST', 'KUBERNETES_SERVICE_PORT'] as const

export interface InClusterOptions {
  readonly env?: Readonly<Record<string, string | undefined>>
  /** folder of token and ca.crt */
  readonly account?: string
}

/** Throws ConfigError when this is no pod, or its environment makes no sense. */
export function inCluster({ env = process.env, account = ACCOUNT }: InClusterOptions = {}): ApiServer {
  const place = [DIRECT, SERVICE].find(([name]) => (env[name] ?? '') !== '')
  if (place === undefined)
    throw new ConfigError('CLUSTER_SERVICE_HOST', 'is not set, and neither is KUBERNETES_SERVICE_HOST: this is no pod of a cluster')
  const [hostName, portName] = place
  const port = Number(env[portName] ?? '443')
  if (!isPort(port)) throw new ConfigError(portName, `${JSON.stringify(env[portName])} is no port`)
  const host = (env[hostName] ?? '').replace(/^\[(.*)\]$/, '$1')
  return {
    protocol: 'https:',
    host,
    port,
    byService: place === DIRECT ? undefined : byServiceText(host, env['NAMESPACE'] ?? "the agent's namespace"),
    prefix: '',
    tls: async () => ({ ca: await readFile(join(account, 'ca.crt'), 'utf8') }),
    // the kubelet replaces it before it expires
    headers: async () => ({ authorization: `Bearer ${(await readFile(join(account, 'token'), 'utf8')).trim()}` }),
  }
}

function byServiceText(host: string, namespace: string): string {
  const missing = `no ${DIRECT[0]} was in config map cluster-services-endpoint of ${namespace} when this program started`
  return `${missing}: the API server is asked at ${host}, the address of its service, which kube-proxy or its like has to serve`
}
