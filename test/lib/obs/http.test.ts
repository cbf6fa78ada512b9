// SPDX-License-Identifier: Apache-2.0
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { Guard } from '#lib/base/os/guard.ts'
import { PageServer, type Page } from '#lib/obs/http.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'

const HOST = '127.0.0.1'

async function serving(run: (url: string, failures: string[]) => Promise<void>): Promise<void> {
  const failures: string[] = []
  await using server = new PageServer({
    host: HOST,
    port: 0,
    pages: {
      '/fine': () => ({ status: 200, type: 'text/plain', body: 'fine\n' }),
      '/broken': () => Promise.reject(new Error('no')),
    },
    onError: (path) => failures.push(path),
  })
  await run(`http://${HOST}:${await server.start()}`, failures)
}

describe('the page server', () => {
  test('answers its pages, whatever the query', () =>
    serving(async (url) => {
      const answer = await fetch(`${url}/fine?verbose=1`)
      expect([answer.status, answer.headers.get('content-type'), await answer.text()]).toEqual([200, 'text/plain', 'fine\n'])
    }))

  test('refuses other pages and methods', () =>
    serving(async (url) => {
      const status = async (path: string, method: string): Promise<number> => (await fetch(url + path, { method })).status
      expect([
        await status('/other', 'GET'),
        await status('/constructor', 'GET'),
        await status('/fine', 'POST'),
        await status('/fine', 'HEAD'),
      ]).toEqual([404, 404, 405, 200])
    }))

  test('a page that fails is an answer and a report, not an end', () =>
    serving(async (url, failures) => {
      expect((await fetch(`${url}/broken`)).status).toBe(500)
      expect(failures).toEqual(['/broken'])
      expect((await fetch(`${url}/fine`)).status).toBe(200)
    }))

  test('may answer every path, with headers of its own', async () => {
    const page = { status: 503, type: 'application/json', body: '{}', headers: { 'x-weight': '0' } }
    await using server = new PageServer({ host: undefined, port: 0, pages: { '*': () => page }, onError: () => undefined })
    const port = await server.start()
    for (const host of ['127.0.0.1', '[::1]']) {
      const answer = await fetch(`http://${host}:${port}/any/path`)
      expect([answer.status, answer.headers.get('x-weight'), await answer.text()]).toEqual([503, '0', '{}'])
    }
  })

  test('a start on a port in use rejects', () =>
    serving(async (url) => {
      const other = new PageServer({ host: HOST, port: Number(new URL(url).port), pages: {}, onError: () => undefined })
      await expect(other.start()).rejects.toMatchObject({ code: 'EADDRINUSE' })
    }))
})

/** What the server has said until it hung up; 'open' when it has not by then. */
async function said(socket: Socket, ms: number): Promise<string> {
  let text = ''
  socket.on('data', (part: Buffer) => (text += part.toString()))
  const closed = new Promise((resolve) => socket.once('close', () => resolve(true)))
  return (await Promise.race([closed, new Promise((resolve) => setTimeout(resolve, ms, false))])) === true ? text : 'open'
}

async function connected(url: string, text = ''): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), HOST)
  socket.on('error', () => undefined)
  await once(socket, 'connect')
  socket.write(text)
  return socket
}

describe('clients of the page server cannot keep each other out', () => {
  test('a client is answered while another keeps 1,100 connections and says nothing', () =>
    serving(async (url) => {
      await withinBestOfThree(1000, async () => {
        const idle = await Promise.all(Array.from({ length: 1100 }, () => connected(url)))
        const began = performance.now()
        const answer = await fetch(`${url}/fine`)
        const took = performance.now() - began
        expect(answer.status).toBe(200)
        for (const socket of idle) socket.destroy()
        return took
      })
    }))

  test.each(['', 'GET /fine HTTP/1.1\r\n', 'G'])('who has not asked within two seconds is cut off, having said %j', (text) =>
    serving(async (url) => {
      using socket = closing(await connected(url, text))
      const slow = setInterval(() => text !== '' && socket.it.write('x'), 300)
      expect(await said(socket.it, 4000)).toBe('')
      clearInterval(slow)
    }),
  )

  test('who sends requests without waiting for answers is told one', () =>
    serving(async (url) => {
      using socket = closing(await connected(url, 'GET /fine HTTP/1.1\r\nhost: a\r\n\r\n'.repeat(1000)))
      const text = await said(socket.it, 4000)
      expect(text.split('HTTP/1.1 200 OK').length - 1).toBeLessThanOrEqual(1)
      expect(text).not.toBe('open')
    }))

  test('what is no request is told so', () =>
    serving(async (url) => {
      using words = closing(await connected(url, 'how are you\r\n\r\n'))
      expect(await said(words.it, 4000)).toMatch(/^HTTP\/1\.1 400 /)
      using much = closing(await connected(url, `GET /fine HTTP/1.1\r\n${'x'.repeat(20_000)}`))
      expect(await said(much.it, 4000)).toMatch(/^HTTP\/1\.1 431 /)
    }))

  test('who says no more after its request gets its answer', () =>
    serving(async (url) => {
      using socket = closing(await connected(url))
      socket.it.end('GET http://node/fine?a HTTP/1.0\n\n')
      expect(await said(socket.it, 4000)).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nfine\n$/)
    }))
})

test('a client far away, to which a long page takes more than a second, gets all of it', async () => {
  const clock = new FakeClock()
  const guard = new Guard({ most: 8, perPeer: 8, perSecond: 100, sayMs: 2000 }, clock)
  const pages = { '/long': (): Page => ({ status: 200, type: 'text/plain', body: 'x'.repeat(500_000) }) }
  await using server = new PageServer({ host: HOST, port: 0, guard, pages, onError: () => undefined })
  using socket = closing(await connected(`http://${HOST}:${await server.start()}`, 'GET /long HTTP/1.1\r\n\r\n'))
  await once(socket.it, 'readable')
  // the kernel has all of it by then
  await sleep(200)
  clock.advance(1500)
  await sleep(50)
  expect((await said(socket.it, 4000)).length).toBeGreaterThan(500_000)
})

test('a page that takes long to make is told again for a while', async () => {
  const costMs = 20
  const madeAt: number[] = []
  const page = (): Page => {
    madeAt.push(performance.now())
    const before = process.threadCpuUsage()
    while (process.threadCpuUsage(before).user < costMs * 1000);
    return { status: 200, type: 'text/plain', body: String(madeAt.length) }
  }
  await using server = new PageServer({ host: HOST, port: 0, pages: { '/costly': page }, onError: () => undefined })
  const url = `http://${HOST}:${await server.start()}/costly`
  const bodies = await Promise.all(Array.from({ length: 20 }, async () => await (await fetch(url)).text()))
  await expect.poll(async () => await (await fetch(url)).text()).not.toBe(bodies.at(-1))
  const gaps = madeAt.slice(1).map((at, index) => at - (madeAt[index] ?? 0))
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(10 * costMs)
})

function closing(it: Socket): Disposable & { readonly it: Socket } {
  return { it, [Symbol.dispose]: () => it.destroy() }
}
