// SPDX-License-Identifier: Apache-2.0
/** The operator's command line. Layer: operator. */
import { parseFlags, portOf } from '#lib/base/flags.ts'
import type { Port } from '#lib/base/ip.ts'

export interface OperatorOptions {
  /** undefined: as the service account of the pod that this is */
  readonly kubeconfig: string | undefined
  /** its own: the Lease and the endpoint's config map */
  readonly namespace: string
  /** of what it installs */
  readonly systemNamespace: string
  /** 0: off */
  readonly healthPort: Port | 0
}

export type Command = { readonly kind: 'run'; readonly options: OperatorOptions } | { readonly kind: 'version' } | { readonly kind: 'help' }

export const HELP = `netplane-operator: installs Netplane as the Installation says, and keeps it so

  netplane-operator [--kubeconfig FILE] [options]

  --kubeconfig FILE        the API server; without it that of the pod's service account, at CLUSTER_SERVICE_HOST and
                           CLUSTER_SERVICE_PORT where they are set
  --namespace NAME         its own namespace (default: netplane-operator)
  --system-namespace NAME  namespace of what it installs (default: netplane-system)
  --health-port PORT       /liveness and /readiness on 127.0.0.1; 0: off (default: 9098)
  --version, --help
`

/** Throws ConfigError that names the flag. */
export function parseOptions(argv: readonly string[]): Command {
  const flags = parseFlags(argv, FLAGS)
  if (flags.help === true) return { kind: 'help' }
  if (flags.version === true) return { kind: 'version' }
  return {
    kind: 'run',
    options: {
      kubeconfig: flags.kubeconfig,
      namespace: flags.namespace ?? 'netplane-operator',
      systemNamespace: flags['system-namespace'] ?? 'netplane-system',
      healthPort: portOf('--health-port', flags['health-port'] ?? '9098') ?? 0,
    },
  }
}

const FLAGS = {
  kubeconfig: { type: 'string' },
  namespace: { type: 'string' },
  'system-namespace': { type: 'string' },
  'health-port': { type: 'string' },
  version: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const
