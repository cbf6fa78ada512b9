// SPDX-License-Identifier: Apache-2.0
/** Sends probes and hears them by this node's kernel. As the tunnel's packets do, they leave without a UDP socket, and
 * the other end sees them before its firewall does. Layer: agent. */
import { closeSync, writeSync } from 'node:fs'
import { openProbeTap, openRawUdp } from '#native'
import { formatAddr } from '#lib/base/ip.ts'
import { packetsOf } from '../../interfaces/tap.ts'
import type { TunnelWire } from './probe.ts'

export const kernelWire: TunnelWire = {
  listen: (port, family) => {
    const fd = openProbeTap(port, family)
    return {
      packets: () => packetsOf(fd),
      [Symbol.dispose]: () => {
        closeSync(fd)
      },
    }
  },
  open: (source, address) => {
    const { fd, mtu } = openRawUdp(formatAddr(source), formatAddr(address))
    return {
      mtu,
      send: (packet) => {
        writeSync(fd, packet)
      },
      [Symbol.dispose]: () => {
        closeSync(fd)
      },
    }
  },
}
