// SPDX-License-Identifier: Apache-2.0
/** What counts as an answer of a name server. Layer: test. */
import { createSocket, type Socket } from 'node:dgram'
import { afterEach, expect, test } from 'vitest'
import { answersName } from '#lib/base/os/name-server.ts'
import { freePort } from '../../../../testkit/base/free-port.ts'
import { withinBestOfThree } from '../../../support/steady/best-of.ts'

const LOOPBACK = { udp4: '127.0.0.1', udp6: '::1' } as const
const open: Socket[] = []

afterEach(() => {
  for (const socket of open.splice(0)) socket.close()
})

/** Whether one that says this to a question counts. */
async function counts(type: 'udp4' | 'udp6', answer: (question: Buffer) => Buffer | undefined): Promise<boolean> {
  const server = createSocket(type)
  open.push(server)
  server.on('message', (question, { port, address }) => {
    const text = answer(question)
    if (text !== undefined) server.send(text, port, address)
  })
  await new Promise<void>((resolve) => {
    server.bind(0, LOOPBACK[type], resolve)
  })
  return (await answersName(LOOPBACK[type], server.address().port)) !== undefined
}

/** That there is no such name. */
function refusal(question: Buffer): Buffer {
  const answer = Buffer.from(question)
  answer.writeUInt16BE(0x8183, 2)
  return answer
}

test('that there is no such name is an answer, by either family', async () => {
  expect(await Promise.all([counts('udp4', refusal), counts('udp6', refusal)])).toEqual([true, true])
})

test('silence, an echo, what is too short, and the answer to another question are none', async () => {
  const ofAnother = (question: Buffer): Buffer => {
    const answer = refusal(question)
    answer.writeUInt16BE(1, 0)
    return answer
  }
  const wrong = [() => undefined, (question: Buffer) => question, () => Buffer.from('no'), ofAnother]
  expect(await Promise.all(wrong.map((answer) => counts('udp4', answer)))).toEqual([false, false, false, false])
})

test('where nothing listens that is known at once', async () => {
  const port = await freePort()
  await withinBestOfThree(1000, async () => {
    const began = performance.now()
    expect(await answersName('127.0.0.1', port)).toBeUndefined()
    return performance.now() - began
  })
})
