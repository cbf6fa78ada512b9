// SPDX-License-Identifier: Apache-2.0
/** The connect-time cases on this machine's kernel, in a cgroup of their own. Layer: test. */
import { mkdtempSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cgroup2Mount } from '#agent/dataplane/attach/cgroup.ts'
import { connectCases } from './connect-cases.ts'
import { kernelFacts } from '../kernel-facts.ts'

const mount = cgroup2Mount(readFileSync('/proc/self/mounts', 'utf8')) ?? ''
let cgroup: string
/** below the mount, as /proc has it */
let home: string

beforeAll(() => {
  home = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1] ?? '/'
  cgroup = mkdtempSync(join(mount, 'netplane-connect-'))
  writeFileSync(join(cgroup, 'cgroup.procs'), String(process.pid))
})

afterAll(() => {
  writeFileSync(join(mount, home, 'cgroup.procs'), String(process.pid))
  rmdirSync(cgroup)
})

test('sockets that mean services', async () => {
  const seen = new Map<string, string | undefined>()
  await connectCases(cgroup, kernelFacts(), (name, wrong) => seen.set(name, wrong))
  expect([...seen].filter(([, wrong]) => wrong !== undefined)).toEqual([])
  expect(seen.size).toBe(38)
}, 60_000)
