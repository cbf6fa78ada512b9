// SPDX-License-Identifier: Apache-2.0
/** A cluster's DNS, as small as tests allow: `dns.ts --kubeconfig FILE --listen ADDRESS`. Layer: testkit. */
import { createSocket } from 'node:dgram'
import { createServer, isIPv6 } from 'node:net'
import { parseArgs } from 'node:util'
import { Api } from '../api.ts'
import { formatAnswer, parseQuestion } from '../dns-message.ts'
import { lookUp, type Get } from '../dns-names.ts'

const PORT = 53

/** One question a message, by either protocol; a failed look-up is not answered, and so asked again. */
async function answer(message: Buffer, get: Get): Promise<Buffer | undefined> {
  const question = parseQuestion(message)
  if (question === undefined) return undefined
  try {
    return formatAnswer(question, await lookUp(question.name, get))
  } catch (thrown) {
    console.error(question.name, thrown)
    return undefined
  }
}

function main(): void {
  const { values } = parseArgs({ options: { kubeconfig: { type: 'string' }, listen: { type: 'string' } } })
  const api = new Api(values.kubeconfig ?? '')
  const get: Get = (path) => api.get(path)
  const socket = createSocket(isIPv6(values.listen ?? '') ? 'udp6' : 'udp4')
  socket.on('message', (message, peer) => {
    void answer(message, get).then((reply) => {
      if (reply !== undefined) socket.send(reply, peer.port, peer.address)
    })
  })
  socket.bind(PORT, values.listen)
  // by TCP each message has its length before it; one question a connection
  const server = createServer((connection) => {
    let held = Buffer.alloc(0)
    connection.on('error', () => undefined)
    connection.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      if (held.length < 2 || held.length < 2 + held.readUInt16BE(0)) return
      void answer(held.subarray(2, 2 + held.readUInt16BE(0)), get).then((reply) => {
        const length = Buffer.alloc(2)
        length.writeUInt16BE(reply?.length ?? 0)
        connection.end(Buffer.concat([length, reply ?? Buffer.alloc(0)]))
      })
    })
  })
  server.listen(PORT, values.listen)
}

main()
