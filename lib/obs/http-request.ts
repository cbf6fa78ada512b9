// SPDX-License-Identifier: Apache-2.0
/** The head of a request for a page, and nothing after it: Node's server would begin all requests that a client has
 * sent one behind the other before anything else gets its turn. Layer: lib/obs. */
import type { Guest } from '#lib/base/os/guard.ts'

export interface Page {
  readonly status: number
  readonly type: string
  readonly body: string
  /** besides the content type */
  readonly headers?: Readonly<Record<string, string>>
}

export interface Asked {
  readonly method: string
  /** without its query */
  readonly path: string
}

const MOST_BYTES = 16 * 1024
/** Until a page is made, and then until the client has taken it. */
const ANSWER_MS = 5000
/** For what was on its way when the answer left: an unread rest would end the connection before the answer is read. And
 * for the answer, which the kernel has yet to bring to a client that is far away. Who lingers gives way. */
const LINGER_MS = 2000
const LINGER_BYTES = 64 * 1024
const PHRASES = new Map([
  [200, 'OK'],
  [400, 'Bad Request'],
  [404, 'Not Found'],
  [405, 'Method Not Allowed'],
  [431, 'Request Header Fields Too Large'],
  [500, 'Internal Server Error'],
  [503, 'Service Unavailable'],
])

/** Calls `run` once, with a number where the client has sent no request that can be read: the status of its answer. */
export function readHead({ socket, idle }: Guest, run: (asked: Asked | number) => void): void {
  let head = ''
  const done = (asked: Asked | number): void => {
    socket.off('data', take).pause()
    idle(ANSWER_MS)
    run(asked)
  }
  const take = (part: Buffer): void => {
    const from = Math.max(0, head.length - 3)
    head += part.toString('latin1')
    if (head.indexOf('\r\n\r\n', from) >= 0 || head.indexOf('\n\n', from) >= 0) done(parse(head))
    else if (head.length > MOST_BYTES) done(431)
  }
  socket.on('data', take)
}

/** One answer a connection. */
export function sendPage({ socket, idle }: Guest, method: string, { status, type, body, headers }: Page): void {
  const bytes = Buffer.from(body)
  const lines = Object.entries({
    'content-type': type,
    ...headers,
    'content-length': String(bytes.length),
    date: new Date().toUTCString(),
    connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = Buffer.from(`HTTP/1.1 ${status} ${PHRASES.get(status) ?? ''}\r\n${lines.join('')}\r\n`)
  idle(ANSWER_MS)
  socket.end(method === 'HEAD' ? head : Buffer.concat([head, bytes]), () => {
    let left = LINGER_BYTES
    socket.on('data', (part: Buffer) => {
      left -= part.length
      if (left < 0) socket.destroy()
    })
    socket.resume()
    idle(LINGER_MS)
  })
}

function parse(head: string): Asked | number {
  const [, method, target] = /^\r?\n?([A-Z]{1,16}) (\S+) HTTP\/1\.[01]\r?\n/.exec(head) ?? []
  if (method === undefined || target === undefined) return 400
  return { method, path: target.replace(/^https?:\/\/[^/]*/i, '').split('?', 1)[0] ?? '' }
}
