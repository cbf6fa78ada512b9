// SPDX-License-Identifier: Apache-2.0
/** TCP ports that sockets of this network namespace listen on. Layer: agent/node. */
import { closeSync, openSync, readSync } from 'node:fs'
import { errorCode } from '#lib/base/errors.ts'

const FILES = ['/proc/net/tcp', '/proc/net/tcp6']
const CHUNK = 1 << 16
/** "   0: 00000000:2810 00000000:0000 0A …": the second number is the port, the last the state. */
const ROW = /^ *\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} ([0-9A-F]{2}) /gm
const LISTENS = '0A'

export function listeningPorts(): ReadonlySet<number> {
  return new Set(FILES.flatMap((file) => portsIn(firstRows(file))))
}

/** From the contents of /proc/net/tcp or tcp6, or the beginning of it. */
export function portsIn(text: string): number[] {
  return [...text.matchAll(ROW)].flatMap(([, port = '', state]) => (state === LISTENS ? [parseInt(port, 16)] : []))
}

/** The kernel lists the sockets that listen first: of a node with many connections most is not read. */
function firstRows(file: string): string {
  const fd = openIfThere(file)
  if (fd === undefined) return ''
  try {
    const chunk = Buffer.alloc(CHUNK)
    let text = ''
    for (;;) {
      const size = readSync(fd, chunk)
      text += chunk.toString('latin1', 0, size)
      if (size === 0 || hasOthers(text)) return text
    }
  } finally {
    closeSync(fd)
  }
}

function hasOthers(text: string): boolean {
  return text.matchAll(ROW).some(([, , state]) => state !== LISTENS)
}

/** A node without IPv6 has no file for it. */
function openIfThere(file: string): number | undefined {
  try {
    return openSync(file, 'r')
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  }
}
