// SPDX-License-Identifier: Apache-2.0
/** The agent's command line. Layer: agent. */
import { hostname } from 'node:os'
import { ConfigError } from '#lib/base/errors.ts'
import { parseFlags, portOf } from '#lib/base/flags.ts'
import type { Port } from '#lib/base/ip.ts'
import { DEFAULT_PIN_DIR } from '../maps/catalogue.ts'
import type { FlowTarget } from '../flows/sender.ts'
import { cniOf, ON_NODE, type CniOptions } from '../pods/cni-options.ts'
import { parsePreflight, PREFLIGHT_HELP, type PreflightOptions } from '../preflight/options.ts'
import type { Origin } from './sources.ts'
import type { Told } from '#lib/base/os/program.ts'

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
  /** there while the datastore was last read not to be locked */
  readonly datastoreFile?: string
  /** the aggregator that is told of flows; undefined: there is none */
  readonly flowTarget?: FlowTarget
  /** undefined: another plugin attaches pods, we only see to their packets */
  readonly cni?: CniOptions
  /** that plugin makes ways to other nodes' pods as well, and no list has ours */
  readonly foreignNetwork?: true
}

/** What is ours to see to, and not another plugin's. */
export interface AgentRole {
  /** ways to other nodes' pods */
  readonly makesRoutes: boolean
  /** pods' addresses, and how they are reached */
  readonly servesPods: boolean
}

export function agentRole({ cni, foreignNetwork }: Pick<AgentOptions, 'cni' | 'foreignNetwork'>): AgentRole {
  const isOurs = cni !== undefined && !cni.chained && !cni.local
  return { makesRoutes: isOurs || (cni === undefined && foreignNetwork !== true), servesPods: isOurs }
}

export type Command =
  | { readonly kind: 'run'; readonly options: AgentOptions }
  | { readonly kind: 'print-desired'; readonly options: Pick<AgentOptions, 'node' | 'origin' | 'config'> }
  | (Pick<AgentOptions, 'pinDir' | 'stateDir' | 'keepDir'> & { readonly kind: 'cleanup'; readonly cgroup: string | undefined })
  | { readonly kind: 'preflight'; readonly options: PreflightOptions }

export const HELP = `netplane-agent: keeps one node's data plane as its cluster wants it

  netplane-agent --node NAME [--kubeconfig FILE | --resources DIR] [options]
  netplane-agent --node NAME [--kubeconfig FILE | --resources DIR] --print-desired
  netplane-agent --cleanup [--pin-dir DIR] [--state-dir DIR] [--cgroup DIR]
  netplane-agent preflight [options]     what this node lacks: see preflight --help

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
  --node-root DIR      where this container sees the node's root; with --cni-conf-on-node and --cni-bin-on-node, the paths that the
                       two folders have on the node: folders that are replaced there are found again
  --daemon-set NS/NAME DaemonSet of the agents: how many nodes are ready is shown in ClusterInformation
  --datastore-file FILE
                       is there while the datastore was last read not to be locked: what a probe looks for
  --flows-server URL   tell this aggregator of the node's flows: https://HOST:PORT, or http to this machine
  --flows-ca FILE, --flows-cert FILE, --flows-key FILE
                       with https: the authority that knows it, and what this node is known by; read for each connection
  --cni-chained        pods stay those of the plugin whose network configuration is in the folder: ours goes to the end of its list
  --cni-local          ways to other nodes' pods are another program's, as flannel's: pods' addresses are of their Node's podCIDRs,
                       and pools are not asked
  --cni-none           pods, and ways to those of other nodes, stay another plugin's, and ours is in no list
  --cni-mtu BYTES      MTU of the devices of pods that start from now on (default: as the node's devices have it)
  --cni-no-host-ports  pods have no ports of the node, and start all the same when they ask for some
  --print-desired      print the wanted data plane as JSON and end; touches nothing
  --cleanup            take everything of Netplane off this node and end
  --cgroup DIR         with --cleanup: the cgroup2 directory (default: its mount)
  --version, --help
`

const DEFAULT_STATE_DIR = '/run/netplane'
const DEFAULT_KEEP_DIR = '/var/lib/netplane'

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
  ...ON_NODE,
  'daemon-set',
  'datastore-file',
  'flows-server',
  'flows-ca',
  'flows-cert',
  'flows-key',
  'cni-chained',
  'cni-local',
  'cni-none',
  'cni-mtu',
  'cni-no-host-ports',
  'print-desired',
] as const

/** Throws ConfigError that names the flag. */
export function parseOptions(argv: readonly string[]): Command | Told {
  if (argv[0] === 'preflight') {
    const options = parsePreflight(argv.slice(1))
    return options === undefined ? { kind: 'help', text: PREFLIGHT_HELP } : { kind: 'preflight', options }
  }
  const flags = parseFlags(argv, FLAGS)
  if (flags.help === true) return { kind: 'help', text: HELP }
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
  const others = {
    ...cniOf(flags, places.stateDir),
    ...daemonSetOf(flags['daemon-set']),
    ...datastoreFileOf(flags['datastore-file'], origin),
    ...flowTargetOf(flags),
  }
  return { kind: 'run', options: { node, origin, ...places, objects: flags.objects, config: flags.config, ...ports, ...others } }
}

function daemonSetOf(text: string | undefined): Pick<AgentOptions, 'daemonSet'> {
  if (text === undefined) return {}
  const [, namespace, name] = /^([a-z0-9-]+)\/([a-z0-9.-]+)$/.exec(text) ?? []
  if (namespace === undefined || name === undefined) throw new ConfigError('--daemon-set', `${JSON.stringify(text)} is no NAMESPACE/NAME`)
  return { daemonSet: { namespace, name } }
}

function datastoreFileOf(file: string | undefined, origin: Origin): Pick<AgentOptions, 'datastoreFile'> {
  if (file === undefined) return {}
  if (origin.kind === 'directory') throw new ConfigError('--datastore-file', 'does not go with --resources: a directory is never locked')
  return { datastoreFile: file }
}

interface FlowFlags {
  readonly 'flows-server'?: string | undefined
  readonly 'flows-ca'?: string | undefined
  readonly 'flows-cert'?: string | undefined
  readonly 'flows-key'?: string | undefined
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

function flowTargetOf(flags: FlowFlags): Pick<AgentOptions, 'flowTarget'> {
  const [server, ca, cert, key] = [flags['flows-server'], flags['flows-ca'], flags['flows-cert'], flags['flows-key']]
  const given = (['flows-ca', 'flows-cert', 'flows-key'] as const).find((flag) => flags[flag] !== undefined)
  if (server === undefined) {
    if (given !== undefined) throw new ConfigError(`--${given}`, 'needs --flows-server')
    return {}
  }
  const url = URL.canParse(server) ? new URL(server) : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || url.pathname !== '/')
    throw new ConfigError('--flows-server', `${JSON.stringify(server)} is no https://HOST:PORT`)
  if (url.protocol === 'https:') {
    if (ca === undefined || cert === undefined || key === undefined)
      throw new ConfigError('--flows-server', 'needs --flows-ca, --flows-cert and --flows-key')
    return { flowTarget: { url: url.origin, tls: { ca, cert, key } } }
  }
  if (!LOOPBACK.test(url.hostname)) throw new ConfigError('--flows-server', 'must be https, but to this machine itself')
  if (given !== undefined) throw new ConfigError(`--${given}`, 'goes with https')
  return { flowTarget: { url: url.origin, tls: undefined } }
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
  'node-root': { type: 'string' },
  'cni-conf-on-node': { type: 'string' },
  'cni-bin-on-node': { type: 'string' },
  'daemon-set': { type: 'string' },
  'flows-server': { type: 'string' },
  'flows-ca': { type: 'string' },
  'flows-cert': { type: 'string' },
  'flows-key': { type: 'string' },
  'datastore-file': { type: 'string' },
  'cni-chained': { type: 'boolean' },
  'cni-local': { type: 'boolean' },
  'cni-none': { type: 'boolean' },
  'cni-mtu': { type: 'string' },
  'cni-no-host-ports': { type: 'boolean' },
  'print-desired': { type: 'boolean' },
  cleanup: { type: 'boolean' },
  version: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const
