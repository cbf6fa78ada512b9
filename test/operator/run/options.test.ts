// SPDX-License-Identifier: Apache-2.0
/** The operator's command line. Layer: test. */
import { expect, test } from 'vitest'
import { HELP, parseOptions } from '#operator/run/options.ts'

test('without flags it is the pod of its own namespace', () => {
  const options = {
    kubeconfig: undefined,
    namespace: 'netplane-operator',
    systemNamespace: 'netplane-system',
    healthPort: 9098,
    metricsPort: 0,
  }
  expect(parseOptions([])).toEqual({ kind: 'run', options })
})

test.each([
  [['remove'], { kubeconfig: undefined, timeoutMs: 240_000 }],
  [['remove', '--kubeconfig', 'f', '--timeout', '5'], { kubeconfig: 'f', timeoutMs: 5000 }],
])('%j removes the Installation', (argv, options) => {
  expect(parseOptions(argv)).toEqual({ kind: 'remove', ...options })
})

test.each([[['--help']], [['-h']], [['remove', '--help']], [['remove', '-h']], [['ask', '--help']]])('%j asks for help', (argv) => {
  expect(parseOptions(argv)).toEqual({ kind: 'help', text: HELP })
})

test.each([
  [['--health-port', ''], '--health-port: "" is no port (0..65535)'],
  [['--health-port', '70000'], '--health-port: "70000" is no port (0..65535)'],
  [['--image', 'x'], "command line: Unknown option '--image'"],
  [['remove', '--timeout', '5m'], '--timeout: "5m" is no number of seconds'],
  [['ask', '--for', 'x'], '--for: "x" is no number of seconds'],
  [['remove', '--namespace', 'x'], "command line: Unknown option '--namespace'"],
  [['run'], "command line: Unexpected argument 'run'"],
])('%j is refused by its flag', (argv, message) => {
  expect(() => parseOptions(argv)).toThrow(message)
})
