// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parsePreflight, PREFLIGHT_HELP } from '#agent/preflight/options.ts'
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
    expect(parse('--cni-conf-dir=/c', '--cni-local')).toMatchObject({ options: { cni: { chained: false, local: true } } })
    expect(() => parse('--cni-local')).toThrow('--cni-local: only goes with --cni-conf-dir')
    expect(() => parse('--cni-conf-dir=/c', '--cni-chained', '--cni-local')).toThrow('--cni-local: does not go with --cni-chained')
    expect(() => parse('--cni-bin-dir=/b')).toThrow('--cni-bin-dir: only goes with --cni-conf-dir')
    expect(parse('--cni-conf-dir=/c', '--node-root=/host', '--cni-conf-on-node=/n', '--cni-bin-on-node=/o')).toMatchObject({
      options: { cni: { confDir: '/c', onNode: { root: '/host', confDir: '/n', binDir: '/o' } } },
    })
    expect(() => parse('--cni-conf-dir=/c', '--node-root=/host')).toThrow('--node-root: goes with --cni-conf-on-node')
    expect(() => parse('--node-root=/host')).toThrow('--node-root: only goes with --cni-conf-dir')
    expect(parse('--cni-none')).toMatchObject({ options: { foreignNetwork: true } })
    expect(parse()).not.toHaveProperty('options.foreignNetwork')
    expect(() => parse('--cni-conf-dir=/c', '--cni-none')).toThrow('--cni-none: does not go with --cni-conf-dir')
    expect(parse('--cni-conf-dir=/c')).toMatchObject({ options: { cni: { hostPorts: true, mtu: undefined } } })
    expect(parse('--cni-conf-dir=/c', '--cni-no-host-ports', '--cni-mtu=1400')).toMatchObject({
      options: { cni: { hostPorts: false, mtu: 1400 } },
    })
    expect(() => parse('--cni-mtu=1400')).toThrow('--cni-mtu: only goes with --cni-conf-dir')
    expect(() => parse('--cni-conf-dir=/c', '--cni-chained', '--cni-mtu=1400')).toThrow('--cni-mtu: does not go with --cni-chained')
    for (const bytes of ['67', '65536', '1e3', '']) expect(() => parse('--cni-conf-dir=/c', `--cni-mtu=${bytes}`)).toThrow('--cni-mtu: ')
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
    [
      ['--node=n1', '--flows-server=http://127.0.0.1:1'],
      { kind: 'run', options: { flowTarget: { url: 'http://127.0.0.1:1', tls: undefined } } },
    ],
    [
      ['--node=n1', '--flows-server=https://[fd00::1]:7443', '--flows-ca=a', '--flows-cert=c', '--flows-key=k'],
      { kind: 'run', options: { flowTarget: { url: 'https://[fd00::1]:7443', tls: { ca: 'a', cert: 'c', key: 'k' } } } },
    ],
    [['--node=n1', '--datastore-file=/f'], { kind: 'run', options: { datastoreFile: '/f' } }],
  ])('%j', (argv, expected) => {
    expect(parseOptions(argv)).toMatchObject(expected)
  })

  test.each([
    [['--kubeconfig=k', '--resources=d'], /^--kubeconfig: does not go with --resources/],
    [['--cleanup', '--kubeconfig=k'], /^--kubeconfig: does not go with --cleanup/],
    [['--resources=d', '--node='], /^--node: must not be empty/],
    [['--resources=d', '--health-port=65536'], /^--health-port: "65536" is no port/],
    [['--resources=d', '--datastore-file=/f'], /^--datastore-file: does not go with --resources/],
    [['--resources=d', '--flows-server=10.0.0.1:7443'], /^--flows-server: "10.0.0.1:7443" is no https/],
    [['--resources=d', '--flows-server=http://10.0.0.1:7443'], /^--flows-server: must be https, but to this machine itself/],
    [['--resources=d', '--flows-server=https://10.0.0.1:7443'], /^--flows-server: needs --flows-ca, --flows-cert and --flows-key/],
    [['--resources=d', '--flows-ca=a'], /^--flows-ca: needs --flows-server/],
    [['--cleanup', '--flows-server=http://[::1]:1'], /^--flows-server: does not go with --cleanup/],
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
      'node-root',
      'cni-conf-on-node',
      'cni-bin-on-node',
      'cni-chained',
      'cni-local',
      'cni-none',
      'cni-mtu',
      'cni-no-host-ports',
      'cleanup',
      'cgroup',
      'version',
      'help',
    ])
      expect(HELP).toContain(`--${flag}`)
  })
})

describe('the command line of preflight', () => {
  test('looks at all that needs nothing more, on a node without a plan', () => {
    expect(parseOptions(['preflight'])).toMatchObject({
      kind: 'preflight',
      options: {
        groups: ['kernel', 'devices', 'others', 'vxlan'],
        cni: 'Netplane',
        sysFs: '/sys/fs',
        vxlanPort: 4789,
        check: false,
        addresses: [],
      },
    })
    expect(parsePreflight(['--endpoint=h:1'])?.groups).toEqual(['kernel', 'devices', 'others', 'endpoint', 'vxlan'])
    expect(parsePreflight(['--group=vxlan', '--group=kernel'])?.groups).toEqual(['kernel', 'vxlan'])
    expect(parseOptions(['preflight', '--help'])).toEqual({ kind: 'help', text: PREFLIGHT_HELP })
  })

  test.each([
    [['--group=moon'], /^--group: "moon" is none of kernel, devices/],
    [['--group=endpoint'], /^--endpoint: is missing/],
    [['--endpoint=host'], /^--endpoint: "host" is no HOST:PORT/],
    [['--endpoint=:6443'], /^--endpoint/],
    [['--cni=Calico'], /^--cni: "Calico" is none of Netplane/],
    [['--mtu=big'], /^--mtu: "big" is no number/],
    [['--vxlan-port=0'], /^--vxlan-port: must not be 0/],
    [['more'], /^command line: .*more/],
  ])('%j is refused by name', (argv, message) => {
    expect(() => parsePreflight(argv)).toThrow(message)
  })

  test('every flag is in its help', () => {
    const source = readFileSync(new URL('../../../agent/preflight/options.ts', import.meta.url), 'utf8')
    const flags = [...source.matchAll(/^ {2}'?([a-z-]+)'?: \{ type: '(?:string|boolean)'/gm)].map(([, flag = '']) => flag)
    expect(flags.length).toBeGreaterThan(10)
    expect(flags.filter((flag) => flag !== 'help' && !PREFLIGHT_HELP.includes(`--${flag} `))).toEqual([])
  })
})
