// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))
const PROGRAMS = ['agent', 'cli', 'controllers', 'flows', 'lib', 'operator', 'upgrade', 'native']
/** What makes a server, and why it may. */
const MAKES: Readonly<Record<string, string>> = {
  'lib/base/os/guarded-server.ts': 'the one that listens',
  'lib/base/os/guarded-http.ts': 'gets connections from it',
  'flows/grpc/server.ts': 'gets connections from it',
  'agent/run/lock.ts': 'an abstract socket that says one line to each client, and hangs up',
}

test('no program of ours listens but by the guarded server', () => {
  const makers = PROGRAMS.flatMap((top) =>
    readdirSync(join(ROOT, top), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => join(top, file))
      .filter((file) => /\bcreate(Secure)?Server\b|\bnew (net\.|http\.)?Server\(/.test(readFileSync(join(ROOT, file), 'utf8'))),
  )
  expect(makers.sort()).toEqual(Object.keys(MAKES).sort())
})
