// SPDX-License-Identifier: Apache-2.0
/** The command line of the controllers. Layer: test. */
import { expect, test } from 'vitest'
import { HELP, parseOptions } from '#controllers/run/options.ts'

test('without flags it is the pod that deploy/ makes', () => {
  const options = { kubeconfig: undefined, namespace: 'netplane-system', daemonSet: 'netplane-node', healthPort: 9097, metricsPort: 0 }
  expect(parseOptions([])).toEqual({ kind: 'run', options })
})

test('every flag can be given', () => {
  expect(parseOptions(['--kubeconfig', 'f', '--namespace=n', '--health-port=0', '--metrics-port', '9100'])).toEqual({
    kind: 'run',
    options: { kubeconfig: 'f', namespace: 'n', daemonSet: 'netplane-node', healthPort: 0, metricsPort: 9100 },
  })
  expect([parseOptions(['-h']), parseOptions(['--version'])]).toEqual([{ kind: 'help', text: HELP }, { kind: 'version' }])
  expect(HELP).toContain('--metrics-port PORT')
})

test.each([
  [['--port', '1'], "Unknown option '--port'"],
  [['--health-port', 'x'], '--health-port: "x" is no port'],
  [['run'], 'Unexpected argument'],
])('%j is refused: %s', (argv, reason) => {
  expect(() => parseOptions(argv)).toThrow(reason)
})
