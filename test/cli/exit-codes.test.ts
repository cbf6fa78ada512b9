// SPDX-License-Identifier: Apache-2.0
/** How commands end, as the page says it and as the program does. Layer: test. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { ConfigError } from '#lib/base/errors.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { readArgs } from '../../cli/args.ts'
import { commands, questions } from '../../cli/commands.ts'
import { EXIT, exitCodesTable, FAILURES } from '../../cli/exit-codes.ts'
import { clusterCommands } from '../../cli/resources/commands.ts'
import { compileCache } from '../../testkit/base/compile-cache.ts'
import { programCommand } from '../../testkit/base/program.ts'

const NAMES = [...clusterCommands, ...commands, ...questions].map(({ name }) => name)

const folder = mkdtempSync(join(tmpdir(), 'netplane-exit-'))
writeFileSync(join(folder, 'bad.yaml'), '{apiVersion: netplane.io/v3, kind: Tier, metadata: {name: t}, spec: {order: x}}')
writeFileSync(join(folder, 'good.yaml'), '{apiVersion: netplane.io/v3, kind: Tier, metadata: {name: t}, spec: {order: 5}}')

afterAll(() => {
  rmSync(folder, { recursive: true })
})

/** With a cluster that is nowhere, and no maps. */
function run(line: string): Promise<string> {
  const [program = '', ...args] = [...programCommand('cli'), ...line.split(' ')]
  const env = { ...compileCache(), PATH: process.env['PATH'], HOME: folder, KUBECONFIG: join(folder, 'nowhere') }
  return new Promise((settle) => {
    execFile(program, args, { cwd: folder, env }, (error, _stdout, stderr) => {
      settle(`${error === null ? 0 : String(error.code)}: ${stderr}`)
    })
  })
}

test('the page has the table, and that has every command', () => {
  expect(readFileSync(join(packageRoot(), 'docs/netplanectl.md'), 'utf8')).toContain(`\n\n${exitCodesTable()}\n`)
  expect(Object.keys(FAILURES)).toEqual(NAMES)
})

test('wrong arguments are found before anything is asked', async () => {
  for (const name of NAMES) expect(() => readArgs([...name.split(' '), '--no-such-flag'])).toThrow(ConfigError)
  expect(await run('get tiers --no-such-flag')).toMatch(/^2: netplanectl: .*\nTry --help\.\n$/)
  expect(await run('nonsense')).toMatch(/^2: /)
})

test('help, and what needs neither cluster nor maps, ends with 0', async () => {
  const lines = [
    '--help',
    '--version',
    'bpf nat --help',
    'version --client',
    'completion bash',
    'validate -f good.yaml',
    'convert -f good.yaml',
  ]
  expect(await Promise.all(lines.map(run))).toEqual(lines.map(() => `${EXIT.done}: `))
})

/** One way to fail of each command. */
const FAILING: Readonly<Record<string, string | undefined>> = {
  get: 'tiers',
  apply: '-f good.yaml',
  create: '-f bad.yaml',
  replace: '-f good.yaml',
  delete: 'tier t',
  validate: '-f bad.yaml',
  patch: 'tier t -p {}',
  label: 'tier t a=b',
  version: '',
  bundle: '',
  'ipam show': '',
  'ipam check': '',
  'ipam release': '--ip 10.0.0.1',
  convert: '-f bad.yaml',
  completion: undefined,
  'bpf nat': '--pins nowhere',
  'bpf conntrack': '--pins nowhere',
  'bpf routes': '--pins nowhere',
  'bpf affinity': '--pins nowhere',
  'bpf counters': '--pins nowhere',
  explain: '--resources nowhere a/b c/d:80',
  flows: '--node --socket nowhere',
  'policy check': 'bad.yaml',
  'node status': '--agent 127.0.0.1:1',
  // what it finds is the machine's: test/kernel/preflight/checksystem.test.ts
  'node checksystem': undefined,
  'node bundle': '--output nowhere/x.tar.gz',
  'install endpoint': '',
  'install dns': '',
  'install images': '--file nowhere',
  'install check': '',
  'install remove': '',
  'migrate host-endpoints': '',
  'upgrade plan': '--resources nowhere',
  'upgrade run': '',
  'upgrade back': '',
}

test('every command has a way to fail here, but for two', () => {
  expect(Object.keys(FAILING)).toEqual(NAMES)
})

test.each(Object.entries(FAILING).flatMap(([name, rest]) => (rest === undefined ? [] : [`${name} ${rest}`.trim()])))(
  '%s fails with 1, and says why',
  async (line) => {
    expect(await run(line)).toMatch(/^1: ./)
  },
)
