// SPDX-License-Identifier: Apache-2.0
/** What is told of kernels that this machine does not have. Layer: test. */
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CommandError } from '#lib/base/errors.ts'
import { architectureFindings, fileSystemFindings, hookFindings, jitFindings, refusalFinding } from '#agent/preflight/kernel.ts'
import { OLDEST_KERNEL } from '#lib/base/os/oldest-kernel.ts'
import { missingCapabilities } from '#agent/node/privileges.ts'
import { finding, type Finding } from '#lib/preflight/findings.ts'

const codes = (findings: readonly Finding[]): string[] => findings.map(({ code }) => code)

test('architectures', () => {
  expect(['x64', 'arm64', 'ppc64', 's390x'].map((arch) => codes(architectureFindings(arch)))).toEqual([
    [],
    [],
    ['architecture'],
    ['architecture'],
  ])
})

test('file systems that the kernel does not know', () => {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-sys-fs-'))
  const known = 'nodev\tsysfs\nnodev\tcgroup\nnodev\tcgroup2\nnodev\tbpf\n\text4\n'
  const told = (text: string): string[] => codes(fileSystemFindings(folder, text))
  expect(told(known)).toEqual([])
  expect(told(known.replace('nodev\tbpf\n', ''))).toEqual(['bpffs-missing'])
  expect(told(known.replace('nodev\tcgroup2\n', ''))).toEqual(['cgroup2-missing'])
  rmdirSync(folder)
})

test('a refusal is told as that of an old kernel, or of one that should take the programs', () => {
  expect(refusalFinding('4.18.0-147.el8.x86_64', 'no data')).toEqual(
    finding('kernel-too-old', '4.18.0-147.el8.x86_64', OLDEST_KERNEL, 'no data'),
  )
  expect(refusalFinding('7.9.1', 'R4 invalid')).toEqual(finding('kernel-refuses', '7.9.1', 'R4 invalid'))
})

test('the compiler of programs', () => {
  expect(['0\n', '1\n', undefined].map((text) => codes(jitFindings(text)))).toEqual([['jit-off'], [], []])
})

test('capabilities that a pod did not get, root or not', () => {
  const status = (bits: number[]): string =>
    `Name:\tnode\nCapEff:\t${bits
      .reduce((sum, bit) => sum | (1n << BigInt(bit)), 0n)
      .toString(16)
      .padStart(16, '0')}\n`
  expect(missingCapabilities(status([12, 13, 21]))).toEqual([])
  expect(missingCapabilities(status([0, 1, 12]))).toEqual(['NET_RAW', 'SYS_ADMIN'])
  expect(missingCapabilities('')).toEqual(['NET_ADMIN', 'NET_RAW', 'SYS_ADMIN'])
})

test('filters are tried for, and nothing is told where there is nothing to try with', async () => {
  const fails = (status: number, stderr: string) => (): Promise<never> =>
    Promise.reject(new CommandError({ command: 'unshare', status, stderr }))
  expect(await hookFindings(() => Promise.resolve(''))).toEqual([])
  expect(await hookFindings(() => Promise.resolve(undefined))).toEqual([])
  expect(await hookFindings(fails(127, 'sh: 1: tc: not found'))).toEqual([])
  expect(await hookFindings(fails(1, 'unshare: unshare failed: Operation not permitted'))).toEqual([])
  expect(await hookFindings(fails(2, 'Error: Specified qdisc kind is unknown.\n'))).toEqual([
    finding('hooks-missing', 'filters of programs at clsact', 'Error: Specified qdisc kind is unknown.'),
  ])
})
