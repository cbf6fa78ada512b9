// SPDX-License-Identifier: Apache-2.0
/** Layer: test. */
import { describe, expect, test } from 'vitest'
import { failureList, ofCommand, ofReport, slowestList, testsOf } from './failures.ts'

describe('a report', () => {
  const report = {
    numPassedTests: 3,
    numFailedTests: 1,
    numPendingTests: 1,
    numTodoTests: 0,
    testResults: [
      {
        name: '/top/test/lab/lab.test.ts',
        startTime: 1000,
        endTime: 3500,
        status: 'failed',
        assertionResults: [
          { status: 'passed', ancestorTitles: [], title: 'fine', failureMessages: [] },
          { status: 'skipped', ancestorTitles: [], title: 'not yet', failureMessages: [] },
          {
            status: 'failed',
            ancestorTitles: ['a lab'],
            title: 'is repaired',
            failureMessages: ['AssertionError: \u001b[31mexpected\u001b[39m 0 to be 1\n    at /top/test'],
          },
        ],
      },
      { name: '/top/test/broken.test.ts', status: 'failed', message: 'Cannot find module x\nmore', assertionResults: [] },
      { name: '/top/test/good.test.ts', status: 'passed', message: '', assertionResults: [] },
    ],
  }

  test('has each test that ran with what it said, by the name that its failure has', () => {
    expect(testsOf(JSON.stringify(report), '/top')).toEqual([
      { name: 'test/lab/lab.test.ts > fine', error: undefined },
      { name: 'test/lab/lab.test.ts > a lab > is repaired', error: 'AssertionError: expected 0 to be 1' },
      { name: 'test/broken.test.ts', error: 'Cannot find module x\n    more' },
    ])
  })

  test('knows of a failed test by its whole title whether it says [once]', () => {
    const failing = (title: string, message: string): object => ({
      ...{ status: 'failed', ancestorTitles: ['policy'], title, failureMessages: [message] },
    })
    const tests = [failing(`${'long '.repeat(50)}[once]`, 'lost'), failing('another', 'expected [once] to be 2')]
    const file = { name: '/top/x.test.ts', status: 'failed', assertionResults: tests }
    const { failures } = ofReport(JSON.stringify({ testResults: [file] }), '/top')
    expect(failures.map(({ isOnce }) => isOnce)).toEqual([true, undefined])
  })

  test('names every failed test by file, and a file that could not be loaded', () => {
    expect(ofReport(JSON.stringify(report), '/top')).toEqual({
      passed: 3,
      failed: 2,
      skipped: 1,
      failures: [
        { text: 'test/lab/lab.test.ts > a lab > is repaired\n    AssertionError: expected 0 to be 1', file: 'test/lab/lab.test.ts' },
        { text: 'test/broken.test.ts\n    Cannot find module x\n    more', file: 'test/broken.test.ts' },
      ],
      files: [
        { name: 'test/lab/lab.test.ts', seconds: 2.5, passed: 1, failed: 1, skipped: 1 },
        { name: 'test/broken.test.ts', seconds: 0, passed: 0, failed: 1, skipped: 0 },
        { name: 'test/good.test.ts', seconds: 0, passed: 0, failed: 0, skipped: 0 },
      ],
    })
  })
})

describe('a command', () => {
  test('counts for itself, and its failed lines are taken', () => {
    const output =
      'an error on the way\n   ok      one\n\u001b[31m   FAILED  two was lost\u001b[0m\npart: 1 passed, 0 failed in 2 s\n\ndemo: 1 passed, 1 failed\nbye\n'
    expect(ofCommand(output, 1)).toEqual({ passed: 1, failed: 1, skipped: 0, failures: [{ text: 'FAILED  two was lost' }] })
  })

  test('without a count it is one test', () => {
    expect(ofCommand('all is well\n', 0)).toEqual({ passed: 1, failed: 0, skipped: 0, failures: [] })
    expect(ofCommand('a.ts(1,2): error TS1: no\nmake: *** [lint]\n', 2)).toMatchObject({
      failed: 1,
      failures: [{ text: 'a.ts(1,2): error TS1: no' }],
    })
  })

  test('names a program that is missing, though what was thrown is printed after it', () => {
    const output =
      'sh: 1: ethtool: not found\nCommandError: ethtool -K eth0 (exit code 127)\n    at lab.ts:75 {\n  status: 127\n}\n\nNode.js v24\n'
    expect(ofCommand(output, 127).failures.map(({ text }) => text)).toEqual([
      'sh: 1: ethtool: not found',
      'CommandError: ethtool -K eth0 (exit code 127)',
    ])
  })

  test('that ends badly with nothing failed is a failure, with its last lines', () => {
    expect(ofCommand('a\nb\nc\n5 passed, 0 failed', 3)).toEqual({
      passed: 5,
      failed: 1,
      skipped: 0,
      failures: [{ text: 'b' }, { text: 'c' }, { text: '5 passed, 0 failed' }],
    })
  })
})

test('the list names the stage, and ends when it is long', () => {
  expect(failureList([])).toEqual([])
  const many = Array.from({ length: 14 }, (_, at) => ({ stage: 'lab', failure: { text: `test ${at}` } }))
  expect(failureList(many)).toEqual(['failed:', ...many.slice(0, 12).map(({ failure }) => `  lab: ${failure.text}`), '  and 2 more'])
})

test('the ten slowest files are listed, the slowest first, and no list is printed without any', () => {
  const files = Array.from({ length: 12 }, (_, index) => ({ name: `${index}.test.ts`, seconds: index, passed: 1, failed: 0, skipped: 0 }))
  const lines = slowestList(files)
  expect(lines.length).toBe(11)
  expect(lines[1]).toBe('  11.0 s 11.test.ts')
  expect(lines.at(-1)).toBe('  2.0 s 2.test.ts')
  expect(slowestList([])).toEqual([])
})
