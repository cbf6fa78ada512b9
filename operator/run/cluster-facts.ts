// SPDX-License-Identifier: Apache-2.0
/** What is asked of the cluster once, where no watch is worth it. Layer: operator. */
import { fieldsOf, isObject } from '#lib/base/object.ts'
import { getOrNone } from '#lib/api/absent.ts'
import type { ApiClient } from '#lib/api/client.ts'
import { serverVersion } from '#lib/api/identity.ts'
import type { ApiObject, Named } from '#lib/api/resource.ts'
import { DATAPLANES, PROVIDERS } from '#lib/kube/schema/installation.ts'
import type { ClusterFacts } from '#lib/render/computed.ts'
import { isK3sOf, platformOf, providerOf, type Platform } from '#lib/render/providers.ts'
import { PROXY_PODS } from '#lib/model/pod.ts'
import { PLATFORM_NETWORK, proxyFound } from '../switch/proxy-found.ts'

export function kubeProxyOf({ kubeProxy: { namespace, daemonSet } }: Platform): Named {
  return { apiVersion: 'apps/v1', kind: 'DaemonSet', namespace, name: daemonSet }
}

export interface FactsInput {
  readonly installation: ApiObject
  readonly nodes: Iterable<ApiObject>
  /** whether agents of ours are there, or were */
  readonly isInstalled: boolean
  /** what agents do, by FelixConfiguration default; undefined: it says nothing */
  readonly mode?: ClusterFacts['installed']
  readonly signal: AbortSignal
}

export class ClusterFactsReader {
  readonly #client: Pick<ApiClient, 'get' | 'list' | 'request'>
  #version: string | undefined

  constructor(client: Pick<ApiClient, 'get' | 'list' | 'request'>) {
    this.#client = client
  }

  async read({ installation, nodes, isInstalled, mode, signal }: FactsInput): Promise<ClusterFacts> {
    const all = [...nodes]
    const version = await this.serverVersion(signal)
    const [provider, isK3s] = [providerOf(version, all), isK3sOf(version)]
    if (isInstalled) return { provider, isK3s, hasKubeProxy: false, installed: installedDataplane(installation) ?? mode }
    const said = PROVIDERS.find((one) => one === fieldsOf(installation['spec'])['provider'])
    const platform = platformOf(said ?? provider, isK3s)
    const hasKubeProxy = platform.hidesKubeProxy || (await this.#hasKubeProxy(platform, all, signal))
    return { provider, isK3s, hasKubeProxy, installed: undefined }
  }

  async #hasKubeProxy(platform: Platform, nodes: readonly ApiObject[], signal: AbortSignal): Promise<boolean> {
    const { proxy: action } = platform
    const daemonSet = await getOrNone(this.#client, kubeProxyOf(platform), { signal })
    const network = action === 'platform-operator' ? await getOrNone(this.#client, PLATFORM_NETWORK, { signal }) : undefined
    const pods: ApiObject[] = []
    for (const { namespace, labelSelector } of PROXY_PODS)
      pods.push(...(await this.#client.list({ apiVersion: 'v1', kind: 'Pod', namespace }, { labelSelector, signal })))
    return proxyFound({ action, daemonSet, network, pods, nodes, sight: [] }).state === 'running'
  }

  /** "v1.34.1" */
  async serverVersion(signal: AbortSignal): Promise<string> {
    this.#version ??= await serverVersion(this.#client, { signal })
    return this.#version
  }
}

/** What an Installation's status says was chosen. */
function installedDataplane({ status }: ApiObject): ClusterFacts['installed'] {
  const computed = isObject(status) && isObject(status['computed']) ? status['computed'] : {}
  const network = isObject(computed['netplaneNetwork']) ? computed['netplaneNetwork'] : {}
  return DATAPLANES.find((one) => one === network['linuxDataplane'])
}
