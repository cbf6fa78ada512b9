// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { PageServer } from '#lib/obs/http.ts'

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
