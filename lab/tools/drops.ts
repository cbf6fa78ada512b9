// SPDX-License-Identifier: Apache-2.0
/** Datagrams that this network namespace's sockets had to drop: a loss that no network is to blame for. Layer: lab
 * (tool). */
import { readFileSync } from 'node:fs'

/** Receive and send buffer errors of all UDP sockets, both families, since the namespace began. */
export function udpSocketDrops(): number {
  return sum4(readFileSync('/proc/self/net/snmp', 'latin1')) + sum6(readFileSync('/proc/self/net/snmp6', 'latin1'))
}

function sum4(text: string): number {
  const [names = [], values = []] = text
    .split('\n')
    .filter((line) => line.startsWith('Udp:'))
    .map((line) => line.split(' '))
  return ['RcvbufErrors', 'SndbufErrors'].reduce((total, name) => total + Number(values[names.indexOf(name)] ?? 0), 0)
}

function sum6(text: string): number {
  return [...text.matchAll(/^Udp6(?:Rcvbuf|Sndbuf)Errors\s+(\d+)$/gm)].reduce((total, match) => total + Number(match[1]), 0)
}
