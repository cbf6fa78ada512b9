// SPDX-License-Identifier: Apache-2.0
/** The agent's command line. Layer: agent. */
import { hostname } from 'node:os'
import { ConfigError } from '#lib/base/errors.ts'
import { parseFlags, portOf } from '#lib/base/flags.ts'
import type { Port } from '#lib/base/ip.ts'
import { DEFAULT_PIN_DIR } from '../maps/catalogue.ts'
import type { Origin } from './sources.ts'
import { cniSocket } from './state-files.ts'

export interface AgentOptions {
  readonly node: string
  /** where its objects come from */
  readonly origin: Origin
  readonly pinDir: string
  readonly stateDir: string
  /** for what outlives a reboot */
  readonly keepDir: string
  /** settings that go before those of objects */
  readonly config: string | undefined
  /** folder of the BPF objects; undefined: where the package has them */
  readonly objects: string | undefined
  /** 0: off; undefined: as the configuration says */
  readonly healthPort: Port | 0 | undefined
  readonly metricsPort: Port | 0 | undefined
  /** DaemonSet of the agents: its readiness is that of the cluster */
  readonly daemonSet?: { readonly namespace: string; readonly name: string }
  /** undefined: another plugin attaches pods, we only see to their packets */
  readonly cni?: CniOptions
}

/** Where container runtimes find us. */
export interface CniOptions {
  /** gets the network configuration */
  readonly confDir: string
  /** gets the plugin; other plugins are there as well */
  readonly binDir: string
  /** where the plugin asks */
  readonly socket: string
  /** another plugin makes veths and gives addresses: ours is the last in its list */
  readonly chained: boolean
}

/** What is ours to see to, and not another plugin's. */
export interface AgentRole {
  /** ways to other nodes' pods */
  readonly makesRoutes: boolean
  /** pods' addresses */
  readonly servesPods: boolean
}

export function agentRole({ cni }: Pick<AgentOptions, 'cni'>): AgentRole {
  return { makesRoutes: cni?.chained !== true, servesPods: cni?.chained === false }
}

export type Command =
  | { readonly kind: 'run'; readonly options: AgentOptions }
  | { readonly kind: 'print-desired'; readonly options: Pick<AgentOptions, 'node' | 'origin' | 'config'> }
  | (Pick<AgentOptions, 'pinDir' | 'stateDir' | 'keepDir'> & { readonly kind: 'cleanup'; readonly cgroup: string | undefined })
  | { readonly kind: 'version' }
  | { readonly kind: 'help' }

export const HELP = `netplane-agent: keeps one node's data plane as its cluster wants it

  netplane-agent --node NAME [--kubeconfig FILE | --resources DIR] [options]
  netplane-agent --node NAME [--kubeconfig FILE | --resources DIR] --print-desired
  netplane-agent --cleanup [--pin-dir DIR] [--state-dir DIR] [--cgroup DIR]

  --node NAME          this node's name in the cluster (default: the host's name)
  --kubeconfig FILE    the API server that objects come from; without it, and without --resources, that of the pod's service
                       account, at CLUSTER_SERVICE_HOST and CLUSTER_SERVICE_PORT where they are set
  --resources DIR      folder of manifests instead, watched for changes
  --pin-dir DIR        where programs, maps and links are pinned (default: /sys/fs/bpf/netplane)
  --state-dir DIR      where old sysctl values and pods' attachments are kept (default: /run/netplane), and what outlives a
                       reboot: last good versions of bad policies (default: /var/lib/netplane)
  --config FILE        settings that go before those of FelixConfiguration objects: a YAML mapping of the same fields
                       (those of the environment, FELIX_HEALTHPORT=9099, go before both)
  --objects DIR        folder of the BPF objects (default: the package's own)
  --health-port PORT   /liveness and /readiness on 127.0.0.1; 0: off (default: 9099, or as FelixConfiguration says)
  --metrics-port PORT  /metrics on 127.0.0.1 (or prometheusMetricsHost); 0: off (default: off, or as FelixConfiguration says)
  --cni-conf-dir DIR   serve pods by CNI, and write the network configuration here once they can be; without it pods are another
                       plugin's
  --cni-bin-dir DIR    where the CNI plugin is put (default: /opt/cni/bin)
  --daemon-set NS/NAME DaemonSet of the agents: how many nodes are ready is shown in ClusterInformation
  --cni-chained        pods stay those of the plugin whose network configuration is in the folder: ours goes to the end of its list
  --print-desired      print the wanted data plane as JSON and end; touches nothing
  --cleanup            take everything of Netplane off this node and end
  --cgroup DIR         with --cleanup: the cgroup2 directory (default: its mount)
  --version, --help
`

const DEFAULT_STATE_DIR = '/run/netplane'
const DEFAULT_KEEP_DIR = '/var/lib/netplane'
const DEFAULT_BIN_DIR = '/opt/cni/bin'

/** Of an agent that runs or prints, and so nothing for --cleanup. */
const RUN_FLAGS = [
  'node',
  'kubeconfig',
  'resources',
  'objects',
  'config',
  'health-port',
  'metrics-port',
  'cni-conf-dir',
  'cni-bin-dir',
  'daemon-set',
  'cni-chained',
  'print-desired',
] as const

/** Throws ConfigError that names the flag. */
export function parseOptions(argv: readonly string[]): Command {
  const flags = parseFlags(argv, FLAGS)
  if (flags.help === true) return { kind: 'help' }
  if (flags.version === true) return { kind: 'version' }
  const places = {
    pinDir: flags['pin-dir'] ?? DEFAULT_PIN_DIR,
    stateDir: flags['state-dir'] ?? DEFAULT_STATE_DIR,
    keepDir: flags['state-dir'] ?? DEFAULT_KEEP_DIR,
  }
  if (flags.cleanup === true) {
    for (const flag of RUN_FLAGS) if (flags[flag] !== undefined) throw new ConfigError(`--${flag}`, 'does not go with --cleanup')
    return { kind: 'cleanup', ...places, cgroup: flags.cgroup }
  }
  if (flags.cgroup !== undefined) throw new ConfigError('--cgroup', 'only goes with --cleanup')
  const origin = originOf(flags)
  const node = flags.node ?? hostname()
  if (node === '') throw new ConfigError('--node', 'must not be empty')
  if (flags['print-desired'] === true) return { kind: 'print-desired', options: { node, origin, config: flags.config } }
  const ports = { healthPort: portOf('--health-port', flags['health-port']), metricsPort: portOf('--metrics-port', flags['metrics-port']) }
  const others = { ...cniOf(flags, places.stateDir), ...daemonSetOf(flags['daemon-set']) }
  return { kind: 'run', options: { node, origin, ...places, objects: flags.objects, config: flags.config, ...ports, ...others } }
}

function daemonSetOf(text: string | undefined): Pick<AgentOptions, 'daemonSet'> {
  if (text === undefined) return {}
  const [, namespace, name] = /^([a-z0-9-]+)\/([a-z0-9.-]+)$/.exec(text) ?? []
  if (namespace === undefined || name === undefined) throw new ConfigError('--daemon-set', `${JSON.stringify(text)} is no NAMESPACE/NAME`)
  return { daemonSet: { namespace, name } }
}

interface CniFlags {
  readonly 'cni-conf-dir'?: string | undefined
  readonly 'cni-bin-dir'?: string | undefined
  readonly 'cni-chained'?: boolean | undefined
}

function cniOf(flags: CniFlags, stateDir: string): { readonly cni?: CniOptions } {
  const { 'cni-conf-dir': confDir, 'cni-bin-dir': binDir = DEFAULT_BIN_DIR, 'cni-chained': chained = false } = flags
  if (confDir !== undefined) return { cni: { confDir, binDir, socket: cniSocket(stateDir), chained } }
  for (const flag of ['cni-bin-dir', 'cni-chained'] as const)
    if (flags[flag] !== undefined) throw new ConfigError(`--${flag}`, 'only goes with --cni-conf-dir')
  return {}
}

function originOf(flags: { readonly kubeconfig?: string | undefined; readonly resources?: string | undefined }): Origin {
  const { kubeconfig, resources } = flags
  if (kubeconfig !== undefined && resources !== undefined) throw new ConfigError('--kubeconfig', 'does not go with --resources')
  if (resources !== undefined) return { kind: 'directory', directory: resources }
  return kubeconfig === undefined ? { kind: 'in-cluster' } : { kind: 'kubeconfig', file: kubeconfig }
}

const FLAGS = {
  node: { type: 'string' },
  kubeconfig: { type: 'string' },
  resources: { type: 'string' },
  'pin-dir': { type: 'string' },
  'state-dir': { type: 'string' },
  objects: { type: 'string' },
  config: { type: 'string' },
  cgroup: { type: 'string' },
  'health-port': { type: 'string' },
  'metrics-port': { type: 'string' },
  'cni-conf-dir': { type: 'string' },
  'cni-bin-dir': { type: 'string' },
  'daemon-set': { type: 'string' },
  'cni-chained': { type: 'boolean' },
  'print-desired': { type: 'boolean' },
  cleanup: { type: 'boolean' },
  version: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const
