// SPDX-License-Identifier: Apache-2.0
/** The command line of `netplane-agent preflight`. Layer: agent. */
import { hostname } from 'node:os'
import { ConfigError } from '#lib/base/errors.ts'
import { parseFlags, portOf } from '#lib/base/flags.ts'
import { isPort, type Port } from '#lib/base/ip.ts'
import { PEERS_TIMEOUT_S, PROBE_GROUPS, type ProbeGroup } from '#lib/preflight/findings.ts'
import { fields } from '../config/schema.ts'

const CNI_TYPES = ['Netplane', 'Local', 'Chained', 'None'] as const

export interface EndpointPlace {
  /** a name or an address */
  readonly host: string
  readonly port: Port
}

export interface PreflightOptions {
  readonly groups: readonly ProbeGroup[]
  /** by which peers know it */
  readonly node: string
  /** of the node; none: those of the devices of default routes */
  readonly addresses: readonly string[]
  /** whose pods are plugged in by whom */
  readonly cni: (typeof CNI_TYPES)[number]
  /** of runtimes' network configuration; undefined: it is not looked into */
  readonly confDir: string | undefined
  /** that pods are to have */
  readonly mtu: number | undefined
  /** where the node's own / is */
  readonly nodeRoot: string
  /** of the node, which the agent has to write */
  readonly hostPaths: readonly string[]
  /** where the node's own /sys/fs is */
  readonly sysFs: string
  /** folder of the BPF objects; undefined: the package's own */
  readonly objects: string | undefined
  readonly endpoint: EndpointPlace | undefined
  /** of the service default/kubernetes */
  readonly serviceAddresses: readonly string[]
  /** folder of token and ca.crt */
  readonly account: string
  readonly vxlanPort: Port
  /** file of nodes that are asked, and ask, whether the tunnel's packets arrive */
  readonly peers: string | undefined
  /** those of another run are not heard */
  readonly run: string
  /** for so long at most a node waits for the others' packets */
  readonly peersTimeoutMs: number
  /** gets the report */
  readonly terminationLog: string | undefined
  /** a blocking finding is a failure */
  readonly check: boolean
}

export const PREFLIGHT_HELP = `netplane-agent preflight: what this node lacks for Netplane; changes nothing

  netplane-agent preflight [options]

  --group GROUP           kernel, devices, others, endpoint or vxlan, and again for more (default: all but endpoint,
                          which needs --endpoint)
  --check                 exit with 1 when a finding is blocking
  --termination-log FILE  gets a report of codes, for the operator
  --node-addresses LIST   the node's addresses by commas (default: those of the devices of default routes)
  --cni TYPE              who plugs pods in: Netplane, Local, Chained or None (default: Netplane)
  --cni-conf-dir DIR      look for network configurations of other plugins in this folder of the node
  --mtu BYTES             that pods are to have (default: what the node's device leaves them)
  --node-root DIR         where the node's own / is (default: /)
  --host-path DIR         folder of the node that must be one that can be written; and again for more
  --sys-fs DIR            where the node's own /sys/fs is (default: /sys/fs)
  --objects DIR           folder of the BPF objects (default: the package's own)
  --endpoint HOST:PORT    the API server; an IPv6 address without brackets
  --service-address ADDR  of the service default/kubernetes, which must not be the endpoint; and again for more
  --account DIR           token and ca.crt to ask the endpoint with (default: those of the pod)
  --vxlan-port PORT       of the tunnel between nodes (default: 4789)
  --peers FILE            nodes that run the same at the same time, a line each: its name and its addresses
  --node NAME             this node's name there (default: the host's name)
  --run ID                nodes of another run are not heard
  --peers-timeout SECONDS for the packets of the others, at most (default: ${PEERS_TIMEOUT_S})

  Exit codes: 0 it could look; 1 with --check, something is blocking; 2 it could not look, or wrong arguments
`

const FLAGS = {
  group: { type: 'string', multiple: true },
  check: { type: 'boolean' },
  'termination-log': { type: 'string' },
  'node-addresses': { type: 'string' },
  cni: { type: 'string' },
  'cni-conf-dir': { type: 'string' },
  mtu: { type: 'string' },
  'node-root': { type: 'string' },
  'host-path': { type: 'string', multiple: true },
  'sys-fs': { type: 'string' },
  objects: { type: 'string' },
  endpoint: { type: 'string' },
  'service-address': { type: 'string', multiple: true },
  account: { type: 'string' },
  'vxlan-port': { type: 'string' },
  peers: { type: 'string' },
  node: { type: 'string' },
  run: { type: 'string' },
  'peers-timeout': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'

/** undefined: help is asked for. Throws ConfigError that names the flag. */
export function parsePreflight(argv: readonly string[]): PreflightOptions | undefined {
  const flags = parseFlags(argv, FLAGS)
  if (flags.help === true) return undefined
  const endpoint = endpointOf(flags.endpoint)
  const groups = flags.group?.map(groupOf) ?? PROBE_GROUPS.filter((group) => group !== 'endpoint' || endpoint !== undefined)
  if (groups.includes('endpoint') && endpoint === undefined) throw new ConfigError('--endpoint', 'is missing, which the group asks')
  const vxlanPort = portOf('--vxlan-port', flags['vxlan-port']) ?? fields.tunnelPort.fallback
  if (vxlanPort === 0) throw new ConfigError('--vxlan-port', 'must not be 0')
  return {
    groups: PROBE_GROUPS.filter((group) => groups.includes(group)),
    node: flags.node ?? hostname(),
    addresses: (flags['node-addresses'] ?? '').split(',').filter((address) => address !== ''),
    cni: oneOf('--cni', flags.cni ?? 'Netplane', CNI_TYPES),
    confDir: flags['cni-conf-dir'],
    mtu: mtuOf(flags.mtu),
    nodeRoot: flags['node-root'] ?? '/',
    hostPaths: flags['host-path'] ?? [],
    sysFs: flags['sys-fs'] ?? '/sys/fs',
    objects: flags.objects,
    endpoint,
    serviceAddresses: flags['service-address'] ?? [],
    account: flags.account ?? ACCOUNT,
    vxlanPort,
    peers: flags.peers,
    run: flags.run ?? '',
    peersTimeoutMs: timeoutMsOf(flags['peers-timeout']),
    terminationLog: flags['termination-log'],
    check: flags.check === true,
  }
}

/** Throws ConfigError. */
function timeoutMsOf(text: string | undefined): number {
  const seconds = Number(text ?? PEERS_TIMEOUT_S)
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > 600)
    throw new ConfigError('--peers-timeout', `${JSON.stringify(text)} is no number of seconds from 1 to 600`)
  return seconds * 1000
}

function groupOf(text: string): ProbeGroup {
  return oneOf('--group', text, PROBE_GROUPS)
}

function oneOf<const T extends string>(flag: string, text: string, known: readonly T[]): T {
  const found = known.find((one) => one === text)
  if (found === undefined) throw new ConfigError(flag, `${JSON.stringify(text)} is none of ${known.join(', ')}`)
  return found
}

function mtuOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const value = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (value === 0) throw new ConfigError('--mtu', `${JSON.stringify(text)} is no number of bytes`)
  return value
}

/** Brackets stay: the probe says what is wrong with them. */
function endpointOf(text: string | undefined): EndpointPlace | undefined {
  if (text === undefined) return undefined
  const at = text.lastIndexOf(':')
  const [host, port] = [text.slice(0, Math.max(at, 0)), Number(text.slice(at + 1))]
  if (host === '' || !isPort(port)) throw new ConfigError('--endpoint', `${JSON.stringify(text)} is no HOST:PORT`)
  return { host, port }
}
