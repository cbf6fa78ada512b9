// SPDX-License-Identifier: Apache-2.0
/** The operator's command line. Layer: operator. */
import { ConfigError } from '#lib/base/errors.ts'
import { parseFlags, portOf } from '#lib/base/flags.ts'
import type { Port } from '#lib/base/ip.ts'
import type { Told } from '#lib/base/os/program.ts'

export interface OperatorOptions {
  /** undefined: as the service account of the pod that this is */
  readonly kubeconfig: string | undefined
  /** its own: the Lease and the endpoint's config map */
  readonly namespace: string
  /** that it runs on */
  readonly node: string | undefined
  /** of what it installs */
  readonly systemNamespace: string
  /** 0: off */
  readonly healthPort: Port | 0
  /** 0: off */
  readonly metricsPort: Port | 0
}

export type Command =
  | { readonly kind: 'run'; readonly options: OperatorOptions }
  | { readonly kind: 'remove'; readonly kubeconfig: string | undefined; readonly timeoutMs: number }
  | { readonly kind: 'ask'; readonly places: readonly string[]; readonly patienceMs: number }

export const HELP = `netplane-operator: installs Netplane as the Installation says, and keeps it so

  netplane-operator [--kubeconfig FILE] [options]
  netplane-operator remove [--kubeconfig FILE] [--timeout SECONDS]
  netplane-operator ask --place PLACE [--place PLACE …] [--for SECONDS]

  remove                   deletes the Installation and waits until it is gone, by default 240 s; the
                           exit code is 1 when it is still there
  ask                      prints which of these node ports answer, 192.0.2.1:30080 or 192.0.2.1:30053/UDP; one that is
                           silent is asked again for so long, by default once

  --kubeconfig FILE        the API server; without it that of the pod's service account, at CLUSTER_SERVICE_HOST and
                           CLUSTER_SERVICE_PORT where they are set
  --namespace NAME         its own namespace (default: netplane-operator)
  --node NAME              where it runs: a switch begins with another node, which then asks this one from outside
  --system-namespace NAME  namespace of what it installs (default: netplane-system)
  --health-port PORT       /liveness and /readiness on 127.0.0.1; 0: off (default: 9098)
  --metrics-port PORT      /metrics on every address; 0: off (default: 0)
  --version, --help
`

/** Throws ConfigError that names the flag. */
export function parseOptions(argv: readonly string[]): Command | Told {
  const [verb, ...rest] = argv
  if (verb === 'remove') return parseRemove(rest)
  if (verb === 'ask') return parseAsk(rest)
  const flags = parseFlags(argv, FLAGS)
  if (flags.help === true) return { kind: 'help', text: HELP }
  if (flags.version === true) return { kind: 'version' }
  return {
    kind: 'run',
    options: {
      kubeconfig: flags.kubeconfig,
      namespace: flags.namespace ?? 'netplane-operator',
      node: flags.node,
      systemNamespace: flags['system-namespace'] ?? 'netplane-system',
      healthPort: portOf('--health-port', flags['health-port'] ?? '9098') ?? 0,
      metricsPort: portOf('--metrics-port', flags['metrics-port'] ?? '0') ?? 0,
    },
  }
}

function parseRemove(argv: readonly string[]): Command | Told {
  const { kubeconfig, timeout = '240', help } = parseFlags(argv, REMOVE_FLAGS)
  if (help === true) return { kind: 'help', text: HELP }
  return { kind: 'remove', kubeconfig, timeoutMs: msOf('--timeout', timeout) }
}

function parseAsk(argv: readonly string[]): Command | Told {
  const { place: places = [], for: patience = '0', help } = parseFlags(argv, ASK_FLAGS)
  if (help === true) return { kind: 'help', text: HELP }
  return { kind: 'ask', places, patienceMs: msOf('--for', patience) }
}

function msOf(flag: string, seconds: string): number {
  if (!/^[0-9]{1,6}$/.test(seconds)) throw new ConfigError(flag, `${JSON.stringify(seconds)} is no number of seconds`)
  return Number(seconds) * 1000
}

const HELP_FLAG = { type: 'boolean', short: 'h' } as const

const REMOVE_FLAGS = { kubeconfig: { type: 'string' }, timeout: { type: 'string' }, help: HELP_FLAG } as const

const ASK_FLAGS = { place: { type: 'string', multiple: true }, for: { type: 'string' }, help: HELP_FLAG } as const

const FLAGS = {
  kubeconfig: { type: 'string' },
  namespace: { type: 'string' },
  node: { type: 'string' },
  'system-namespace': { type: 'string' },
  'health-port': { type: 'string' },
  'metrics-port': { type: 'string' },
  version: { type: 'boolean' },
  help: HELP_FLAG,
} as const
