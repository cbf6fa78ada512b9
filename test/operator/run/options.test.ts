// SPDX-License-Identifier: Apache-2.0
/** The operator's command line. Layer: test. */
import { expect, test } from 'vitest'
import { parseOptions } from '#operator/run/options.ts'

test('without flags it is the pod of its own namespace', () => {
  const options = { kubeconfig: undefined, namespace: 'netplane-operator', systemNamespace: 'netplane-system', healthPort: 9098 }
  expect(parseOptions([])).toEqual({ kind: 'run', options })
})

test.each([
  [['--health-port', ''], '--health-port: "" is no port (0..65535)'],
  [['--health-port', '70000'], '--health-port: "70000" is no port (0..65535)'],
  [['--image', 'x'], "command line: Unknown option '--image'"],
  [['run'], "command line: Unexpected argument 'run'"],
])('%j is refused by its flag', (argv, message) => {
  expect(() => parseOptions(argv)).toThrow(message)
})
