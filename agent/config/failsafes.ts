// SPDX-License-Identifier: Apache-2.0
/** The settings of ports that policy never cuts. Layer: agent/config (pure). */
import { CIDR_SCHEMA } from '#lib/base/address-schema.ts'
import { isPort, parsePort, protocolNumber, protocolText } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import { tryParseStoredCidr } from '#lib/base/stored-ip.ts'
import type { FailsafePort } from '#lib/model/failsafe.ts'
import type { Parser } from './parsers.ts'

const PROTOCOLS: ReadonlyMap<string, number> = new Map((['TCP', 'UDP', 'SCTP'] as const).map((name) => [name, protocolNumber(name)]))
const FIELDS = new Set(['protocol', 'port', 'net'])
const WRONG = 'must be a list like [{"protocol": "TCP", "port": 22, "net": "10.0.0.0/8"}], net only where it matters'

/** Of the protocols whose names are in capitals or not; an empty list is none at all. */
export const failsafePorts: Parser<readonly FailsafePort[]> = {
  type: 'list of protocol, port, net',
  schema: {
    type: 'array',
    maxItems: 1024,
    items: {
      type: 'object',
      required: ['protocol', 'port'],
      properties: {
        protocol: { type: 'string', pattern: '^([tT][cC][pP]|[uU][dD][pP]|[sS][cC][tT][pP])$' },
        port: { type: 'integer', minimum: 1, maximum: 65_535 },
        net: CIDR_SCHEMA,
      },
    },
  },
  parse: (value) => {
    if (!Array.isArray(value)) return { kind: 'refused', reason: WRONG }
    const ports: FailsafePort[] = []
    for (const part of value) {
      const port = failsafePort(part)
      if (port === undefined) return { kind: 'refused', reason: `${WRONG}: ${JSON.stringify(part)} is none` }
      ports.push(port)
    }
    return { kind: 'ok', value: ports }
  },
}

function failsafePort(value: unknown): FailsafePort | undefined {
  if (!isObject(value) || Object.keys(value).some((name) => !FIELDS.has(name))) return undefined
  const { protocol: name, port, net: text } = value
  const protocol = typeof name === 'string' ? PROTOCOLS.get(name.toUpperCase()) : undefined
  const net = typeof text === 'string' ? tryParseStoredCidr(text) : undefined
  if (protocol === undefined || typeof port !== 'number' || !isPort(port)) return undefined
  return text !== undefined && net === undefined ? undefined : { protocol, port, net }
}

/** Ports that a cluster's nodes need of each other, and administrators to repair them: SSH, BGP, etcd, Typha, the API
 * server; DHCP and DNS. */
export const DEFAULT_IN: readonly FailsafePort[] = ports({ TCP: [22, 179, 2379, 2380, 5473, 6443, 6666, 6667], UDP: [68] })
export const DEFAULT_OUT: readonly FailsafePort[] = ports({ TCP: [179, 2379, 2380, 5473, 6443, 6666, 6667], UDP: [53, 67] })

function ports(of: { readonly TCP: readonly number[]; readonly UDP: readonly number[] }): readonly FailsafePort[] {
  return (['TCP', 'UDP'] as const).flatMap((name) =>
    of[name].map((port) => ({ protocol: protocolNumber(name), port: parsePort(port), net: undefined })),
  )
}

/** "TCP 22, UDP 53" */
export function failsafesText(of: readonly FailsafePort[]): string {
  return of.map(({ protocol, port }) => `${protocolText(protocol)} ${port}`).join(', ')
}
