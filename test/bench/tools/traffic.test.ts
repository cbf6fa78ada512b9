// SPDX-License-Identifier: Apache-2.0
/** The traffic tool with sanitizers, both sides of it. RUNS=… for a long look. Layer: test. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isObject } from '#lib/base/object.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { freePort } from '../../../testkit/base/free-port.ts'
import { lcg } from '../../support/lcg.ts'

const TOOL = join(packageRoot(), 'build/sanitized/traffic')
const RUNS = Number(process.env['RUNS'] ?? 100)
const MESSAGE = 64

let port: number
let server: ChildProcess
let driver: ChildProcess
let answers: AsyncIterator<string>
/** of both */
let reports = ''

beforeAll(async () => {
  port = await freePort()
  server = start('serve', String(port))
  driver = start('drive')
  answers = linesOf(driver)
  expect((await linesOf(server).next()).value).toBe('ready')
})

/** A report of a sanitizer ends the tool. */
afterAll(async () => {
  driver.stdin?.end()
  server.kill()
  const ends = await Promise.all([driver, server].map((child) => once(child, 'close')))
  expect([ends, reports]).toEqual([
    [
      [0, null],
      [null, 'SIGTERM'],
    ],
    '',
  ])
})

function start(...args: readonly string[]): ChildProcess {
  const child = spawn(TOOL, args, { stdio: ['pipe', 'pipe', 'pipe'], env: { ASAN_OPTIONS: 'detect_leaks=0' } })
  child.stderr.on('data', (chunk: Buffer) => (reports += chunk.toString()))
  return child
}

function linesOf({ stdout }: ChildProcess): AsyncIterator<string> {
  if (stdout === null) throw new Error('no output')
  return createInterface({ input: stdout })[Symbol.asyncIterator]()
}

async function ask(line: string): Promise<unknown> {
  driver.stdin?.write(`${line}\n`)
  const answer = await answers.next()
  return answer.done === true ? `ended: ${reports}` : JSON.parse(answer.value)
}

test.each([
  ['rr', ['count', 'p50_ns', 'p99_ns', 'per_second']],
  ['crr', ['count', 'p50_ns', 'p99_ns', 'per_second']],
  ['pps', ['sent', 'count', 'per_second']],
  ['tput', ['bits_per_second', 'cpu_ns_per_bit']],
])('%s is measured, by both families', async (verb, fields) => {
  for (const address of ['127.0.0.1', '::1']) {
    const answer = await ask(`${verb} ${address} ${port} 30 0 0`)
    const kinds = isObject(answer) ? Object.entries(answer).map(([field, value]) => [field, typeof value]) : answer
    expect(kinds).toEqual(fields.map((field) => [field, 'number']))
  }
})

test('a time that is none is no command', async () => {
  for (const ms of [0, -1]) expect(await ask(`pps ::1 ${port} ${ms} 0 0`)).toEqual({ error: 'no such command' })
})

test('whatever a line says, it has one answer', async () => {
  const random = lcg(7)
  const words = ['rr', 'crr', 'pps', 'tput', '', 'x'.repeat(30), '127.0.0.1', '::1', String(port), '1', '0', '-1', '200', '99999999', '%s']
  const word = (from = 0): string => words[from + random(words.length - from)] ?? ''
  for (let at = 0; at < RUNS; at++) {
    // the time has its place: nothing takes long
    const line = [word(), word(5), word(5), String(random(4) - 1), word(9), word(9), word()].slice(random(3) === 0 ? 3 : 0).join(' ')
    expect([line, isObject(await ask(line))]).toEqual([line, true])
  }
})

test('whatever comes by a connection, the server goes on', async () => {
  const random = lcg(11)
  for (let at = 0; at < RUNS; at++) {
    const bytes = Buffer.from(Array.from({ length: random(3 * MESSAGE) }, () => random(256)))
    if (bytes.length > 0) bytes.write('CRTQx'.charAt(random(5)), 0)
    const client = connect(port, '127.0.0.1')
    // bytes that the server does not want it answers with a reset
    const closed = new Promise((resolve) => client.on('error', () => undefined).on('close', resolve))
    client.resume().end(bytes)
    await closed
  }
  expect(await ask(`rr ::1 ${port} 5 0 0`)).toHaveProperty('count')
})
