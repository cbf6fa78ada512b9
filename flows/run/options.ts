// SPDX-License-Identifier: Apache-2.0
/** The aggregator's command line. Layer: flows. */
import { ConfigError } from '#lib/base/errors.ts'
import { parseFlags, portOf } from '#lib/base/flags.ts'
import type { Port } from '#lib/base/ip.ts'
import type { Told } from '#lib/base/os/program.ts'
import type { TlsFiles } from '../grpc/tls.ts'

export interface FlowsOptions {
  /** that what is kept is in */
  readonly file: string
  readonly retentionSeconds: number
  readonly retentionBytes: number
  /** of the tables and queries; the process has about 150 MB besides */
  readonly memoryMb: number
  readonly threads: number
  /** of gRPC; undefined: it knows no users */
  readonly tls: TlsFiles | undefined
  /** where gRPC listens; what knows no users listens on loopback alone */
  readonly host: string
  readonly grpcPort: Port | 0
  readonly httpPort: Port | 0
  /** 0: off */
  readonly healthPort: Port | 0
  /** 0: off */
  readonly metricsPort: Port | 0
}

export interface Command {
  readonly kind: 'run'
  readonly options: FlowsOptions
}

export const HELP = `netplane-flows: takes what nodes tell of flows, keeps it, and answers who asks

  netplane-flows --data FOLDER [options]

  --data FOLDER            where flows.duckdb is, which is made when it is not there
  --retention-hours N      windows that are older are forgotten (default: 24)
  --retention-mb N         so large the file may be; the oldest windows go first (default: 2048)
  --memory-mb N            for tables and queries (default: 200)
  --threads N              for queries (default: 2)
  --tls-cert FILE, --tls-key FILE, --client-ca FILE
                           gRPC by TLS: nodes tell of themselves alone, by the name in their certificates
  --host ADDRESS           where gRPC listens (default: 127.0.0.1); other addresses need TLS. HTTP is on 127.0.0.1
  --grpc-port PORT         FlowCollector, Flows and Statistics (default: 7443)
  --http-port PORT         /flows and /flows-filter-hints (default: 3002)
  --health-port PORT       /liveness and /readiness on 127.0.0.1; 0: off (default: 9100)
  --metrics-port PORT      /metrics on every address; 0: off (default: 0)
  --version, --help
`

/** Throws ConfigError that names the flag. */
export function parseOptions(argv: readonly string[]): Command | Told {
  const flags = parseFlags(argv, FLAGS)
  if (flags.help === true) return { kind: 'help', text: HELP }
  if (flags.version === true) return { kind: 'version' }
  if (flags.data === undefined) throw new ConfigError('--data', 'is missing')
  return {
    kind: 'run',
    options: {
      file: `${flags.data.replace(/\/+$/, '')}/flows.duckdb`,
      retentionSeconds: countOf('--retention-hours', flags['retention-hours'] ?? '24') * 3600,
      retentionBytes: countOf('--retention-mb', flags['retention-mb'] ?? '2048') * 2 ** 20,
      memoryMb: countOf('--memory-mb', flags['memory-mb'] ?? '200'),
      threads: countOf('--threads', flags.threads ?? '2'),
      ...listenOf(flags),
      grpcPort: portOf('--grpc-port', flags['grpc-port'] ?? '7443') ?? 0,
      httpPort: portOf('--http-port', flags['http-port'] ?? '3002') ?? 0,
      healthPort: portOf('--health-port', flags['health-port'] ?? '9100') ?? 0,
      metricsPort: portOf('--metrics-port', flags['metrics-port'] ?? '0') ?? 0,
    },
  }
}

interface ListenFlags {
  readonly host?: string | undefined
  readonly 'tls-cert'?: string | undefined
  readonly 'tls-key'?: string | undefined
  readonly 'client-ca'?: string | undefined
}

const LOOPBACK = new Set(['localhost', '127.0.0.1', '::1'])

/** Without certificates nothing listens where others reach it. */
function listenOf(flags: ListenFlags): Pick<FlowsOptions, 'tls' | 'host'> {
  const [cert, key, ca, host = '127.0.0.1'] = [flags['tls-cert'], flags['tls-key'], flags['client-ca'], flags.host]
  if (cert !== undefined && key !== undefined && ca !== undefined) return { tls: { cert, key, ca }, host }
  if (cert !== undefined || key !== undefined || ca !== undefined)
    throw new ConfigError('--tls-cert', 'goes with --tls-key and --client-ca, all three or none')
  if (!LOOPBACK.has(host)) throw new ConfigError('--host', 'needs --tls-cert, --tls-key and --client-ca, but on loopback')
  return { tls: undefined, host }
}

function countOf(flag: string, text: string): number {
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new ConfigError(flag, `${JSON.stringify(text)} is no number from 1 to 999999999`)
  return Number(text)
}

const FLAGS = {
  data: { type: 'string' },
  'retention-hours': { type: 'string' },
  'retention-mb': { type: 'string' },
  'memory-mb': { type: 'string' },
  threads: { type: 'string' },
  host: { type: 'string' },
  'grpc-port': { type: 'string' },
  'tls-cert': { type: 'string' },
  'tls-key': { type: 'string' },
  'client-ca': { type: 'string' },
  'http-port': { type: 'string' },
  'health-port': { type: 'string' },
  'metrics-port': { type: 'string' },
  version: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const
