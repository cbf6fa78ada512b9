// SPDX-License-Identifier: Apache-2.0
/** Questions from one place by one process: what comes back, and in which words. Root. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RequestAgent } from '../../../lab/traffic/request-agent.ts'
import { Lab } from '../../../lab/lab.ts'
import { Manifests, TWO_NODES } from '../cluster.ts'

const manifests = new Manifests(TWO_NODES)
const POD = '[fd00:31:1::3]'
let lab: Lab
let asker: RequestAgent

beforeAll(async () => {
  lab = await Lab.up({ name: 'tasker', resources: manifests.dir, plain: true })
  asker = new RequestAgent(lab, 'one')
})
afterAll(async () => {
  asker.close()
  await lab.down()
  manifests[Symbol.dispose]()
})

async function ask(to: string, more: object = {}): Promise<unknown> {
  return await asker.order({ do: 'ask', to, count: 2, timeoutMs: 500, payload: 64, reply: 0, ...more })
}

describe('questions', () => {
  test('are answered each by a socket of its own', async () => {
    for (const proto of ['tcp', 'udp']) {
      const answer = { pod: 'three', local: `${POD}:8080`, bytes: 1999 }
      expect(await ask(`${proto}:${POD}:8080`, { payload: 2000, reply: 3000 })).toMatchObject([answer, answer])
    }
  })
  test('from one port follow each other', async () => {
    const peer = '[fd00:31::1]:4711'
    expect(await ask(`udp:${POD}:8080`, { localPort: 4711, count: 3 })).toMatchObject([{ peer }, { peer }, { peer }])
  })
  test('that fail say how', async () => {
    expect(await ask(`tcp:${POD}:81`)).toEqual([{ failed: 'ECONNREFUSED' }, { failed: 'ECONNREFUSED' }])
    await lab.mustRun('shop/three', ['ip', 'link', 'set', 'eth0', 'down'])
    try {
      expect(await ask('udp:10.31.1.3:8080')).toEqual([{ failed: 'TIMEOUT' }, { failed: 'TIMEOUT' }])
    } finally {
      await lab.sync()
    }
  })
  test('for a page', async () => {
    const [page] = await asker.order({ do: 'get', url: `http://${POD}:8080/` })
    expect(page).toMatchObject({ status: 200, text: expect.stringContaining('"pod":"three"') as unknown })
    expect(await asker.order({ do: 'get', url: `http://${POD}:81/` })).toEqual([{ failed: 'ECONNREFUSED' }])
  })
})

describe('a connection', () => {
  test('stays for more than one question, and ends when both sides say so', async () => {
    const to = `tcp:${POD}:8080`
    const [first] = await asker.order({ do: 'open', connection: 'c', to, timeoutMs: 1000 })
    const [second] = await asker.order({ do: 'say', connection: 'c', timeoutMs: 1000 })
    expect(first).toMatchObject({ pod: 'three' })
    expect(second).toEqual(first)
    expect(await asker.order({ do: 'finish', connection: 'c', timeoutMs: 1000 })).toEqual([{ finished: true }])
  })
  test('of which the server has closed its half can be closed from here', async () => {
    const order = { do: 'open', connection: 'half', to: `tcp:${POD}:8080`, text: 'GET / HTTP/1.1\r\n\r', timeoutMs: 1000 } as const
    expect(await asker.order(order)).toMatchObject([{ pod: 'three' }])
    expect(await asker.order({ do: 'finish', connection: 'half', timeoutMs: 1000 })).toEqual([{ finished: true }])
  })
})

test('a tool that ended is an error', async () => {
  const other = new RequestAgent(lab, 'two')
  other.close()
  await expect(other.order({ do: 'get', url: 'http://[::1]:1/' })).rejects.toThrow('questions from two: the tool ended')
})
