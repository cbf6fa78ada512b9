// SPDX-License-Identifier: Apache-2.0
/** The command line of the controllers. Layer: controllers. */
import { parseFlags, portOf } from '#lib/base/flags.ts'
import type { Port } from '#lib/base/ip.ts'
import type { Told } from '#lib/base/os/program.ts'
import { NODE } from '#lib/render/input.ts'

export interface ControllersOptions {
  /** undefined: as the service account of the pod that this is */
  readonly kubeconfig: string | undefined
  /** its own: the Lease, and the DaemonSet of the agents */
  readonly namespace: string
  /** of the agents */
  readonly daemonSet: string
  /** 0: off */
  readonly healthPort: Port | 0
  /** 0: off */
  readonly metricsPort: Port | 0
}

export interface Command {
  readonly kind: 'run'
  readonly options: ControllersOptions
}

export const HELP = `netplane-controllers: keeps what the cluster needs once: automatic host endpoints, blocks of nodes that are gone

  netplane-controllers [--kubeconfig FILE] [options]

  --kubeconfig FILE        the API server; without it that of the pod's service account, at CLUSTER_SERVICE_HOST and
                           CLUSTER_SERVICE_PORT where they are set
  --namespace NAME         its own namespace, which is that of the agents (default: netplane-system)
  --daemon-set NAME        DaemonSet of the agents in that namespace (default: netplane-node)
  --health-port PORT       /liveness and /readiness on 127.0.0.1; 0: off (default: 9097)
  --metrics-port PORT      /metrics on every address; 0: off (default: 0)
  --version, --help

What it does the ControllersConfiguration default says.
`

/** Throws ConfigError that names the flag. */
export function parseOptions(argv: readonly string[]): Command | Told {
  const flags = parseFlags(argv, FLAGS)
  if (flags.help === true) return { kind: 'help', text: HELP }
  if (flags.version === true) return { kind: 'version' }
  return {
    kind: 'run',
    options: {
      kubeconfig: flags.kubeconfig,
      namespace: flags.namespace ?? 'netplane-system',
      daemonSet: flags['daemon-set'] ?? NODE,
      healthPort: portOf('--health-port', flags['health-port'] ?? '9097') ?? 0,
      metricsPort: portOf('--metrics-port', flags['metrics-port'] ?? '0') ?? 0,
    },
  }
}

const FLAGS = {
  kubeconfig: { type: 'string' },
  namespace: { type: 'string' },
  'daemon-set': { type: 'string' },
  'health-port': { type: 'string' },
  'metrics-port': { type: 'string' },
  version: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const
