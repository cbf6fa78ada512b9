// SPDX-License-Identifier: Apache-2.0
/** What portmap says of itself, and what is made of one that does not. Layer: test. */
import { chmodSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { silentLog } from '#lib/obs/log.ts'
import { Portmap } from '#agent/cni/portmap.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'

let folder: string
let asked: string
let clock: FakeClock
let portmap: Portmap

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-portmap-'))
  asked = join(folder, 'asked')
  writeFileSync(asked, '')
  clock = new FakeClock()
  portmap = new Portmap({ binDir: () => folder, clock, log: silentLog })
})

afterEach(() => {
  rmSync(folder, { recursive: true })
})

/** Another file, as packages put it there. */
function put(script: string): void {
  const part = join(folder, 'part')
  writeFileSync(part, `#!/bin/sh\necho "$CNI_COMMAND" >> ${asked}\n${script}\n`, { mode: 0o755 })
  renameSync(part, join(folder, 'portmap'))
}

/** What it was asked, one after the other. */
function questions(): readonly string[] {
  return readFileSync(asked, 'utf8').trimEnd().split('\n')
}

const says = (...versions: readonly string[]): string => `echo '${JSON.stringify({ cniVersion: '1.0.0', supportedVersions: versions })}'`

test('portmap is asked for its versions once, and again when its file is another', async () => {
  expect(await portmap.versions()).toBeUndefined()
  put(says('0.4.0', '1.0.0'))
  for (let times = 0; times < 3; times++) expect(await portmap.versions()).toEqual(['0.4.0', '1.0.0'])
  put(says('1.1.0'))
  expect(await portmap.versions()).toEqual(['1.1.0'])
  expect(questions()).toEqual(['VERSION', 'VERSION'])
  chmodSync(join(folder, 'portmap'), 0o644)
  expect(await portmap.versions()).toBeUndefined()
})

test.each([
  ['fails', 'exit 1'],
  ['says something else', 'echo 1.0.0'],
  ['is none of this machine', 'kill -9 $$'],
])('a portmap that %s counts as an older one, and is asked again later', async (_, script) => {
  put(script)
  expect([await portmap.versions(), await portmap.versions()]).toEqual([['1.0.0'], ['1.0.0']])
  expect(questions()).toHaveLength(1)
  clock.advance(60_000)
  expect(await portmap.versions()).toEqual(['1.0.0'])
  expect(questions()).toHaveLength(2)
})

test('a portmap that leaves a process behind which keeps its output open has answered all the same', async () => {
  await withinBestOfThree(3000, async (tries) => {
    const version = `1.1.${tries}`
    put(`${says(version)}; sleep 4 &`)
    const began = performance.now()
    expect(await portmap.versions()).toEqual([version])
    return performance.now() - began
  })
})

test('the wait for a portmap that hangs, or whose child hangs, has a limit', { timeout: 20_000 }, async () => {
  put('sleep 30 & sleep 30')
  expect(await portmap.versions()).toEqual(['1.0.0'])
})
