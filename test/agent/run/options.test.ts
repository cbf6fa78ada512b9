// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest'
import { HELP, parseOptions } from '#agent/run/options.ts'

describe('the command line', () => {
  test('runs with defaults', () => {
    expect(parseOptions(['--node', 'n1', '--resources', 'dir'])).toEqual({
      kind: 'run',
      options: {
        node: 'n1',
        origin: { kind: 'directory', directory: 'dir' },
        pinDir: '/sys/fs/bpf/netplane',
        stateDir: '/run/netplane',
        keepDir: '/var/lib/netplane',
        objects: undefined,
        healthPort: undefined,
        metricsPort: undefined,
      },
    })
  })

  test('takes ports, 0 for off', () => {
    expect(parseOptions(['--resources=dir', '--node=n1', '--health-port=0', '--metrics-port=9091'])).toMatchObject({
      options: { healthPort: 0, metricsPort: 9091 },
    })
  })

  test('pods come by CNI where there is a folder for its configuration', () => {
    const parse = (...flags: string[]): unknown => parseOptions(['--resources=dir', '--node=n1', '--state-dir=/s', ...flags])
    expect(parse()).not.toHaveProperty('options.cni')
    expect(parse('--cni-conf-dir=/c')).toMatchObject({ options: { cni: { confDir: '/c', binDir: '/opt/cni/bin', socket: '/s/cni.sock' } } })
    expect(parse('--cni-conf-dir=/c', '--cni-bin-dir=/b')).toMatchObject({ options: { cni: { binDir: '/b' } } })
    expect(parse('--cni-conf-dir=/c')).toMatchObject({ options: { cni: { chained: false } } })
    expect(parse('--cni-conf-dir=/c', '--cni-chained')).toMatchObject({ options: { cni: { chained: true } } })
    expect(() => parse('--cni-chained')).toThrow('--cni-chained: only goes with --cni-conf-dir')
    expect(() => parse('--cni-bin-dir=/b')).toThrow('--cni-bin-dir: only goes with --cni-conf-dir')
  })

  test.each([
    [['--cleanup', '--state-dir=/s'], { kind: 'cleanup', stateDir: '/s', keepDir: '/s' }],
    [['--cleanup'], { kind: 'cleanup', pinDir: '/sys/fs/bpf/netplane', stateDir: '/run/netplane', cgroup: undefined }],
    [['--version'], { kind: 'version' }],
    [['-h'], { kind: 'help' }],
    [
      ['--node=n1', '--resources=d', '--print-desired'],
      { kind: 'print-desired', options: { node: 'n1', origin: { kind: 'directory', directory: 'd' } } },
    ],
    [['--node=n1', '--kubeconfig=k'], { kind: 'run', options: { origin: { kind: 'kubeconfig', file: 'k' } } }],
    [['--node=n1'], { kind: 'run', options: { origin: { kind: 'in-cluster' } } }],
  ])('%j', (argv, expected) => {
    expect(parseOptions(argv)).toMatchObject(expected)
  })

  test.each([
    [['--kubeconfig=k', '--resources=d'], /^--kubeconfig: does not go with --resources/],
    [['--cleanup', '--kubeconfig=k'], /^--kubeconfig: does not go with --cleanup/],
    [['--resources=d', '--node='], /^--node: must not be empty/],
    [['--resources=d', '--health-port=65536'], /^--health-port: "65536" is no port/],
    [['--resources=d', '--cgroup=/x'], /^--cgroup: only goes with --cleanup/],
    [['--cleanup', '--node=n1'], /^--node: does not go with --cleanup/],
    [['--cleanup', '--print-desired'], /^--print-desired: does not go with --cleanup/],
    [['--cleanup', '--resources=d'], /^--resources: does not go with --cleanup/],
    [['--resources=d', '--bogus'], /^command line: .*bogus/],
    [['--resources=d', 'more'], /^command line: .*more/],
  ])('%j is refused by name', (argv, message) => {
    expect(() => parseOptions(argv)).toThrow(message)
  })

  test('every flag is in the help', () => {
    for (const flag of [
      'node',
      'kubeconfig',
      'resources',
      'pin-dir',
      'state-dir',
      'objects',
      'health-port',
      'metrics-port',
      'print-desired',
      'cni-conf-dir',
      'cni-bin-dir',
      'cni-chained',
      'cleanup',
      'cgroup',
      'version',
      'help',
    ])
      expect(HELP).toContain(`--${flag}`)
  })
})
