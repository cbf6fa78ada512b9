// SPDX-License-Identifier: Apache-2.0
/** Findings are told in words, and travel as codes through termination messages. Layer: test. */
import { expect, test } from 'vitest'
import { ParseError } from '#lib/base/errors.ts'
import { describe as told, finding, FINDINGS, isFindingCode, levelOf, PROBE_GROUPS, type Finding } from '#lib/preflight/findings.ts'
import { MOST_REPORT_BYTES, readReport, writeReport } from '#lib/preflight/report.ts'

const CODES = Object.keys(FINDINGS).filter(isFindingCode)
const bytesOf = (text: string): number => Buffer.byteLength(text)

test.each(CODES)('%s says what it is and what to do, with each of its arguments', (code) => {
  const { args, group, level } = FINDINGS[code]
  const words = args.map((name) => `<${name}>`)
  const text = told({ code, args: words })
  const [what = '', ...rest] = text.split('; ')
  expect(what.length).toBeGreaterThan(10)
  expect(rest.join('; ').length).toBeGreaterThan(10)
  expect(words.filter((word) => !text.includes(word))).toEqual([])
  expect(text).not.toMatch(/undefined|\bwhoever\b|\bnobody\b/)
  expect([...PROBE_GROUPS, 'cluster']).toContain(group)
  expect(levelOf(code)).toBe(level)
})

test('an address that is given as such is told once', () => {
  expect(told(finding('endpoint-service', 'kubernetes', '10.96.0.1'))).toMatch(/^kubernetes is 10\.96\.0\.1, the address of /)
  expect(told(finding('endpoint-service', '10.96.0.1', '10.96.0.1'))).toMatch(/^10\.96\.0\.1 is the address of /)
})

test('a report comes back as it was written, blocking findings first', () => {
  const findings = [finding('jit-off'), finding('mtu-small', 'eth0', 1200, 1330), finding('vxlan-lost-to', 'node "ü"', '10.0.0.2', 4789)]
  const facts = { cluster: 'c0ffee', release: '6.1' }
  const text = writeReport(findings, MOST_REPORT_BYTES, facts)
  expect(text).not.toContain('\n')
  expect(readReport(text)).toEqual({ findings: [findings[1], findings[2], findings[0]], cut: 0, facts })
  expect(readReport(writeReport([], 100))).toEqual({ findings: [], cut: 0, facts: {} })
})

test('all groups, and two containers more, fit into what the kubelet keeps of a pod', () => {
  expect(MOST_REPORT_BYTES).toBeLessThanOrEqual(4096)
  expect(MOST_REPORT_BYTES * (PROBE_GROUPS.length + 2)).toBeLessThanOrEqual(12_288)
})

test('what has no room is counted; blocking findings are cut last, and long reasons short', () => {
  const warnings = Array.from({ length: 300 }, (_, at): Finding => finding('foreign-pins', 'Cilium', `/sys/fs/bpf/☃${at}`))
  const blocking = Array.from({ length: 10 }, (_, at) => finding('vxlan-lost-from', `node-${at}`, '10.0.0.1', 4789))
  for (const most of [200, 1000, MOST_REPORT_BYTES, 4096]) {
    const text = writeReport([...warnings, ...blocking], most, { a: 'b' })
    expect(bytesOf(text)).toBeLessThanOrEqual(most)
    const read = readReport(text)
    expect(read.findings.length + read.cut).toBe(310)
    // one more would not have fitted
    expect(bytesOf(text)).toBeGreaterThan(most - 80)
    const kept = read.findings.filter(({ code }) => code === 'vxlan-lost-from').length
    expect(kept).toBe(Math.min(10, read.findings.length))
  }
  const long = readReport(writeReport([finding('kernel-refuses', '6.1', 'x'.repeat(100_000))]))
  expect(long).toMatchObject({ cut: 0, findings: [{ args: ['6.1', expect.stringMatching(/^x{200}…$/)] }] })
  expect(() => writeReport([], 20)).toThrow(RangeError)
})

test.each([
  ['nothing', ''],
  ['prose', 'Error: no addon'],
  ['a report that was cut', writeReport([finding('jit-off')]).slice(0, -3)],
  ['another version', '{"version":2,"facts":{},"findings":[],"cut":0}'],
  ['an unknown code', '{"version":1,"facts":{},"findings":[["moon-phase"]],"cut":0}'],
  ['a name of every object', '{"version":1,"facts":{},"findings":[["toString"]],"cut":0}'],
  ['an argument that is no text', '{"version":1,"facts":{},"findings":[["jit-off",3]],"cut":0}'],
  ['a fact that is no text', '{"version":1,"facts":{"a":1},"findings":[],"cut":0}'],
  ['no findings', '{"version":1,"facts":{},"cut":0}'],
  ['a count below zero', '{"version":1,"facts":{},"findings":[],"cut":-1}'],
  ['a list', '[]'],
])('%s is no report', (_name, text) => {
  expect(() => readReport(text)).toThrow(ParseError)
})
