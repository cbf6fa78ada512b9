// SPDX-License-Identifier: Apache-2.0
/** The API server that settings lead to. Layer: cli. */
import { inCluster } from '#lib/api/connection/in-cluster.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import type { ApiServer } from '#lib/api/connection/server.ts'
import { ApiClient } from '#lib/api/client.ts'
import { ConfigError, errorText } from '#lib/base/errors.ts'
import type { Settings } from './settings.ts'

/** Throws ConfigError where nothing says how, or what says it cannot be read. */
export function serverOf({ kubeconfig, context }: Settings): ApiServer {
  if (kubeconfig !== undefined) return fromKubeconfig(kubeconfig.value, { context: context?.value })
  try {
    return inCluster()
  } catch (thrown) {
    throw new ConfigError(
      '--kubeconfig',
      `nothing says how the cluster is reached (KUBECONFIG, --config), and ${errorText(thrown)}`,
      thrown,
    )
  }
}

/** Throws ConfigError as {@link serverOf} does. */
export function connect(settings: Settings): ApiClient {
  return new ApiClient({ server: serverOf(settings) })
}
