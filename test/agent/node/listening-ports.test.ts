// SPDX-License-Identifier: Apache-2.0
/** Which TCP ports have a socket that listens. Layer: test. */
import { connect, createServer } from 'node:net'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import { listeningPorts, portsIn } from '#agent/node/listening-ports.ts'

const TEXT = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:2810 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 0 0 0 2
   2: 0100007F:9C41 0100007F:2810 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 20 4 30 10 -1
`

test('the ports are those of rows in the state LISTEN', () => {
  expect(portsIn(TEXT)).toEqual([10256, 8080])
  expect(portsIn('')).toEqual([])
})

test.each(['127.0.0.1', '::1', '::'])('a socket on %s is found while it listens, and a client of it is not', async (host) => {
  const server = createServer().listen(0, host)
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const client = connect(port, host === '::' ? '::1' : host)
  await once(client, 'connect')
  const { localPort = 0 } = client
  expect([port, localPort].map((one) => listeningPorts().has(one))).toEqual([true, false])
  client.destroy()
  server.close()
  await once(server, 'close')
  expect(listeningPorts().has(port)).toBe(false)
})
