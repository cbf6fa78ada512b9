// SPDX-License-Identifier: Apache-2.0
/** Arguments of the commands on addresses. Layer: cli (pure). */
import { ConfigError } from '#lib/base/errors.ts'
import { tryParseAddr, type Addr } from '#lib/base/ip.ts'
import type { Given } from '../given.ts'
import type { ConnectionFlags } from '../resources/order.ts'

interface Common {
  readonly connection: ConnectionFlags
  readonly allowMismatch: boolean
}

export interface IpamShowOrder extends Common {
  readonly kind: 'ipam show'
  readonly what: 'pools' | 'blocks' | 'borrowed' | 'configuration' | { readonly addr: Addr }
}

export interface IpamCheckOrder extends Common {
  readonly kind: 'ipam check'
  readonly showAll: boolean
  readonly showProblems: boolean
  readonly output: string | undefined
}

export interface IpamReleaseOrder extends Common {
  readonly kind: 'ipam release'
  readonly chosen:
    { readonly by: 'address'; readonly addrs: readonly Addr[] } | { readonly by: 'report'; readonly paths: readonly string[] }
  readonly force: boolean
}

export type IpamOrder = IpamShowOrder | IpamCheckOrder | IpamReleaseOrder

/** Throws ConfigError for what does not go together. */
export function readIpam(kind: IpamOrder['kind'], given: Given, { connection, allowMismatch }: Common): IpamOrder {
  const common = { connection, allowMismatch }
  switch (kind) {
    case 'ipam show':
      return { kind, ...common, what: readWhat(given) }
    case 'ipam check': {
      const show = { showAll: given.has('show-all-ips'), showProblems: given.has('show-problem-ips') }
      return { kind, ...common, ...show, output: given.text('output') }
    }
    case 'ipam release': {
      const [texts, paths] = [given.texts('ip'), given.texts('from-report')]
      if ((texts.length === 0) === (paths.length === 0)) throw new ConfigError(kind, 'needs either --ip or --from-report')
      const chosen = paths.length > 0 ? ({ by: 'report', paths } as const) : ({ by: 'address', addrs: texts.map(readAddr) } as const)
      return { kind, ...common, chosen, force: given.has('force') }
    }
  }
}

const SHOWN = { 'show-blocks': 'blocks', 'show-borrowed': 'borrowed', 'show-configuration': 'configuration' } as const

function readWhat(given: Given): IpamShowOrder['what'] {
  const asked = Object.entries(SHOWN).filter(([flag]) => given.has(flag))
  const ip = given.text('ip')
  if (asked.length + Number(ip !== undefined) > 1)
    throw new ConfigError(
      'ipam show',
      `one of --ip, ${Object.keys(SHOWN)
        .map((flag) => `--${flag}`)
        .join(', ')}`,
    )
  return ip === undefined ? (asked[0]?.[1] ?? 'pools') : { addr: readAddr(ip) }
}

function readAddr(text: string): Addr {
  const addr = tryParseAddr(text)
  if (addr === undefined) throw new ConfigError('--ip', `${JSON.stringify(text)} is no IP address`)
  return addr
}
