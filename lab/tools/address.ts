// SPDX-License-Identifier: Apache-2.0
/** "tcp:10.0.0.1:80" and "udp:[fd00::1]:80": how our tools take destinations. Layer: lab (tool, pure). */
import { hostPort } from '#lib/base/ip.ts'

export interface Endpoint {
  readonly proto: 'tcp' | 'udp'
  readonly address: string
  readonly port: number
}

/** Throws a plain Error that names the text. */
export function parseEndpoint(text: string): Endpoint {
  const match = /^(tcp|udp):(?:\[([0-9a-fA-F:.]+(?:%\w+)?)\]|([0-9.]+)):(\d+)$/.exec(text)
  const address = match?.[2] ?? match?.[3]
  if (match === null || address === undefined) throw new Error(`not an endpoint like tcp:10.0.0.1:80 or udp:[fd00::1]:80: ${text}`)
  return { proto: match[1] === 'udp' ? 'udp' : 'tcp', address, port: Number(match[4]) }
}

export function endpointText(endpoint: Endpoint): string {
  return `${endpoint.proto}:${hostPort(endpoint.address, endpoint.port)}`
}

/** A v4 peer of a dual-stack socket without the mapped prefix. */
export function plainAddress(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/, '')
}
