// SPDX-License-Identifier: Apache-2.0
/** The archive of netplanectl, unpacked and run without anything of this folder. Layer: test. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packageVersion } from '#lib/base/os/package.ts'
import { writeDist } from '../../../scripts/dist/main.ts'
import { mustBe } from '../../../scripts/dist/node.ts'

const version = packageVersion()
const work = mkdtempSync(join(tmpdir(), 'netplane-dist-'))
let bin = ''

beforeAll(async () => {
  const archive = await writeDist(process.arch === 'arm64' ? 'arm64' : 'x64', work)
  execFileSync('tar', ['-C', work, '-xzf', archive])
  rmSync(archive)
  bin = join(work, readdirSync(work)[0] ?? '', 'bin')
}, 180_000)

afterAll(() => {
  rmSync(work, { recursive: true })
})

/** With no other Node or package in reach. */
function run(
  program: string,
  ...args: readonly string[]
): { readonly status: number | null; readonly stdout: string; readonly stderr: string } {
  return spawnSync(program, args, { encoding: 'utf8', cwd: work, env: { PATH: '/usr/bin:/bin', HOME: work } })
}

test('it has the program, and that for kubectl beside it', () => {
  expect(readdirSync(bin).sort()).toEqual(['kubectl-netplane', 'netplanectl'])
  for (const name of readdirSync(bin))
    expect(run(join(bin, name), '--version')).toMatchObject({ stdout: `netplanectl ${version}\n`, stderr: '' })
})

test('it is found through a link', () => {
  symlinkSync(join(bin, 'netplanectl'), join(work, 'linked'))
  expect(run(join(work, 'linked'), 'version', '--client')).toMatchObject({ status: 0, stdout: `Client Version:   v${version}\n` })
})

test('verbs that need no server do their work', () => {
  const demo = join(import.meta.dirname, '../../../demo/manifests')
  const explained = run(join(bin, 'netplanectl'), 'explain', '--resources', demo, 'default/shell-a', 'default/web-1:http')
  expect(explained).toMatchObject({ status: 0, stderr: '' })
  expect(explained.stdout).toContain('verdict: allow')
})

test('what reads the kernel says which program can', () => {
  expect(run(join(bin, 'netplanectl'), 'bpf', 'nat')).toMatchObject({ status: 1, stdout: '' })
  expect(run(join(bin, 'netplanectl'), 'bpf', 'nat').stderr).toContain('take the program of the image')
})

test('another Node than the pinned one is refused', () => {
  const integrity = 'sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=='
  expect(() => mustBe({ version: '1', integrity }, Buffer.alloc(0), 'node')).not.toThrow()
  expect(() => mustBe({ version: '1', integrity }, Buffer.alloc(1), 'node')).toThrow('node is not what package-lock.json pins')
})
