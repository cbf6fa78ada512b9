// SPDX-License-Identifier: Apache-2.0
/** Requests over HTTP/2 that are called off. They run in a process of their own with limits, as a mistake here is an
 * endless loop in native code that takes all memory. Layer: test. */
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { constants } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { Authority } from '../../../../testkit/kubernetes/certificates.ts'
import type { Moment, Outcome } from './call-off.ts'

/** bytes of address space, seconds of processor time */
const LIMITS = [`--as=${4 * 2 ** 30}`, '--cpu=8']

let folder = ''
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-called-off-'))
  const authority = await Authority.make(folder)
  await authority.issue('server', '/CN=server', ['IP:127.0.0.1'])
})
afterAll(() => {
  rmSync(folder, { recursive: true })
})

async function callOff(moment: Moment): Promise<Outcome> {
  const script = join(import.meta.dirname, 'call-off.ts')
  const command = [...LIMITS, process.execPath, '--conditions=source', script, moment, folder]
  const { stdout } = await promisify(execFile)('prlimit', command, { timeout: 20_000, killSignal: 'SIGKILL' })
  return JSON.parse(stdout) as Outcome
}

const unheard: number[] = []
const cancelled = [constants.NGHTTP2_CANCEL]

test.for<[string, Moment, number[]]>([
  ['while the client connects', 'connecting', unheard],
  ['while it waits for a stream', 'queued', unheard],
  ['in the tick in which it is sent', 'same tick', cancelled],
  ['after its headers, before the end of its body', 'headers', cancelled],
  ['after its body', 'body', cancelled],
  ['after the beginning of its answer', 'answer', cancelled],
])('a request that is called off %s ends with the reason, and the connection goes on', { timeout: 30_000 }, async ([, moment, codes]) => {
  expect(await callOff(moment)).toEqual({ error: 'Error: called off', codes, next: 200, connections: 1 })
})
