// SPDX-License-Identifier: Apache-2.0
/** The image's root file system for arm64, made on any machine: its programs answer, run by an emulator of that
 * processor. Layer: test. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'
import { FACTS } from '../../testkit/base/arch.ts'
import { readTable } from '../kernel/vm/table.ts'
import { userlandFor } from '../kernel/vm/root/userland.ts'
import { node } from '../kernel/agent/manifests.ts'

const TOP = packageRoot()
const BUILD_MS = 10 * 60_000
const EMULATOR = '/usr/bin/qemu-aarch64-static'

let folder = ''
let root = ''

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-image-'))
  root = join(folder, 'root')
  const compiler = `${FACTS.arm64.triplet}-gcc`
  const [shim, datastore] = ['cni/netplane-cni', 'scripts/image/netplane-datastore'].map((program) => {
    const made = join(folder, basename(program))
    execFileSync(compiler, ['-static', '-s', '-O2', '-o', made, join(TOP, `${program}.c`)])
    return made
  })
  const { node: program, addon } = await userlandFor('arm64', TOP, readTable())
  const env = { ...process.env, ARCH: 'arm64', IMAGE_NODE: program, IMAGE_ADDON: addon, IMAGE_SHIM: shim, IMAGE_DATASTORE: datastore }
  for (const part of ['packages', 'files'])
    execFileSync(join(TOP, 'scripts/image/rootfs'), [part, root], { env, stdio: ['ignore', 'ignore', 'inherit'] })
  copyFileSync(EMULATOR, join(root, 'emulator'))
}, BUILD_MS)

afterAll(() => {
  rmSync(folder, { recursive: true })
})

function run(...command: readonly string[]): string {
  return execFileSync('chroot', [root, '/emulator', ...command], { encoding: 'utf8', timeout: 60_000, env: { PATH: process.env['PATH'] } })
}

const AGENT = ['/opt/netplane/node', '/opt/netplane/dist/agent/main.js']

test.each([
  [[...AGENT, '--version'], /^netplane-agent \d+\.\d+\.\d+$/m],
  [['/opt/netplane/node', '/opt/netplane/dist/cli/main.js', '--version'], /^netplanectl \d+\.\d+\.\d+$/m],
  [['/usr/local/bin/netplane-datastore', '/'], /^$/],
  [['/usr/sbin/xtables-legacy-multi', 'iptables-save', '--version'], /legacy/],
])('%s', (command, says) => {
  expect(run(...command)).toMatch(says)
})

test('the agent loads its addon, and compiles', () => {
  writeFileSync(join(root, 'tmp/node.json'), JSON.stringify(node('n1', '192.0.2.1', '10.1.1.0/24')))
  expect(run(...AGENT, '--node', 'n1', '--resources', '/tmp', '--print-desired')).toMatch(/"workloads"/)
})

test('the plugin answers by itself', () => {
  const answer = execFileSync('chroot', [root, '/emulator', '-E', 'CNI_COMMAND=VERSION', '/opt/netplane/build/netplane-cni'], {
    input: '{}',
  })
  expect(JSON.parse(answer.toString())).toMatchObject({ supportedVersions: expect.arrayContaining(['1.1.0']) as unknown })
})
