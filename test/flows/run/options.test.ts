// SPDX-License-Identifier: Apache-2.0
/** The aggregator's command line. Layer: test. */
import { expect, test } from 'vitest'
import { HELP, parseOptions } from '#flows/run/options.ts'

test('only the folder has to be given', () => {
  expect(parseOptions(['--data', '/var/lib/f/'])).toEqual({
    kind: 'run',
    options: {
      file: '/var/lib/f/flows.duckdb',
      retentionSeconds: 86_400,
      retentionBytes: 2 ** 31,
      memoryMb: 200,
      threads: 2,
      tls: undefined,
      host: '127.0.0.1',
      grpcPort: 7443,
      httpPort: 3002,
      healthPort: 9100,
      metricsPort: 0,
    },
  })
})

test.each([
  [[], '--data'],
  [['--data', 'x', '--threads', '0'], '--threads'],
  [['--data', 'x', '--retention-hours', '1.5'], '--retention-hours'],
  [['--data', 'x', '--grpc-port', '70000'], '--grpc-port'],
  [['--data', 'x', '--host', '0.0.0.0'], '--host'],
  [['--data', 'x', '--tls-cert', 'c', '--tls-key', 'k'], '--tls-cert'],
  [['--data', 'x', 'more'], 'more'],
])('%j is refused, with the flag', (argv, flag) => {
  expect(() => parseOptions(argv)).toThrow(flag)
})

test('with certificates it listens where others reach it', () => {
  const files = ['--tls-cert', 'c', '--tls-key', 'k', '--client-ca', 'a']
  expect(parseOptions(['--data', 'x', '--host', '::', ...files])).toMatchObject({
    options: { host: '::', tls: { cert: 'c', key: 'k', ca: 'a' } },
  })
})

test('every flag is in the help', () => {
  expect(parseOptions(['--help'])).toEqual({ kind: 'help', text: HELP })
  const flags = [
    'data',
    'retention-hours',
    'retention-mb',
    'memory-mb',
    'threads',
    'host',
    'tls-cert',
    'tls-key',
    'client-ca',
    'grpc-port',
    'http-port',
    'health-port',
    'metrics-port',
  ]
  for (const flag of flags) expect(HELP).toContain(`--${flag} `)
})
