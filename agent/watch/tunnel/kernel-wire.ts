// SPDX-License-Identifier: Apache-2.0
/** Packets of probes by this node's kernel. They leave as the tunnel's do: without a socket of UDP, unasked by rules of
 * the host, and seen before firewalls at the other end. Layer: agent. */
import { closeSync, readSync, writeSync } from 'node:fs'
import { openProbeTap, openRawUdp } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import { formatAddr } from '#lib/base/ip.ts'
import type { TunnelWire } from './probe.ts'

const PACKET_BYTES = 256

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

/** All that are there. */
function* packetsOf(fd: number): Generator<Buffer> {
  const buffer = Buffer.alloc(PACKET_BYTES)
  for (;;) {
    try {
      yield buffer.subarray(0, readSync(fd, buffer))
    } catch (thrown) {
      if (errorCode(thrown) === 'EAGAIN') return
      // a device went down
      if (errorCode(thrown) !== 'ENETDOWN') throw thrown
    }
  }
}
