// SPDX-License-Identifier: Apache-2.0
/** A lab as a whole, without agents: what it builds, that it can be built again, that it touches nothing else. Root. */
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { stopDaemon } from '../../lab/processes/daemon.ts'
import { Lab } from '../../lab/lab.ts'
import { netnsInode } from '../../lab/network/netns.ts'
import { serverLog } from '../../lab/paths.ts'
import { holderOf, serverCgroup } from '../../lab/processes/place-holders.ts'
import { killPid } from '../../lab/processes/process.ts'
import { podNamed } from '../../lab/network/topology.ts'
import { request } from '../../lab/traffic/traffic.ts'
import { waitFor } from '../../lab/wait.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import { Manifests, node, pod, TWO_NODES } from './cluster.ts'
import { machine, traces } from './machine.ts'

const WITHOUT_AGENTS = { agents: false, servers: false } as const

describe('a plain lab', () => {
  test('pods reach pods on both nodes, the node and the client, in both families and protocols, with their own addresses', async () => {
    using manifests = new Manifests(TWO_NODES)
    await using lab = await Lab.up({ name: 'tplain', resources: manifests.dir, plain: true })
    const cases = [
      ['default/one', '10.31.0.2', 'two', '10.31.0.1'],
      ['default/one', '10.31.1.3', 'three', '10.31.0.1'],
      ['shop/three', 'fd00:31::1', 'one', 'fd00:31:1::3'],
      ['default/two', 'fd00:31::1', 'one', 'fd00:31::2'],
      ['node/b', 'fd00:31:1::3', 'three', 'fd00:31:7::3'],
      ['node/a', '10.31.1.3', 'three', '172.31.7.2'],
    ] as const
    for (const [from, address, pod, peer] of cases) {
      for (const proto of ['tcp', 'udp'] as const) {
        const result = await request(lab, { from, to: { proto, address, port: 8080 } })
        expect(
          result.answers.map((answer) => [answer.pod, answer.peer.replace(/^\[?(.*?)\]?:\d+$/, '$1')]),
          `${proto} ${from} to ${address}`,
        ).toEqual([[pod, peer]])
      }
    }
    expect((await lab.status()).ok).toBe(true)
  })
})

describe('a lab without agents', () => {
  test('is built, built again without a change, extended, shrunk, and taken down', async () => {
    using manifests = new Manifests(TWO_NODES)
    const before = machine()
    const lab = await Lab.up({ name: 'tbuild', resources: manifests.dir, ...WITHOUT_AGENTS })
    try {
      const identity = (): unknown[] => lab.topology.nodes.map((one) => [holderOf('tbuild', one.name), netnsInode(one.netns)])
      const first = { identity: identity(), links: await lab.mustRun('node/a', ['ip', '-br', 'addr']) }
      expect(first.links).toContain('172.31.7.2/24 fd00:31:7::2/64')
      await lab.sync()
      expect({ identity: identity(), links: await lab.mustRun('node/a', ['ip', '-br', 'addr']) }).toEqual(first)
      expect(machine()).toEqual(before)

      manifests.write([...TWO_NODES.slice(0, 3), pod('default/two', 'b', '10.31.1.4'), node('c', '172.31.8.2'), pod('default/host', 'c')])
      await lab.sync()
      expect(await lab.mustRun('default/two', ['ip', '-br', 'addr'])).toContain('10.31.1.4/32')
      expect(await lab.mustRun('node/b', ['ip', 'route'])).toMatch(/10\.31\.1\.4 dev npl\w{11} scope link/)
      expect(await lab.mustRun('node/a', ['ip', 'route'])).not.toContain('10.31.0.2')
      expect(await lab.mustRun('default/host', ['ip', '-br', 'addr'])).toContain('172.31.8.2/24')
      expect(traces('tbuild')).not.toContain('nplab-tbuild-pod-shop.three')

      manifests.write([node('a', '172.31.7.9')])
      await lab.sync()
      expect(await lab.mustRun('node/a', ['ip', '-br', '-4', 'addr', 'show', 'eth0'])).toMatch(/ 172\.31\.7\.9\/24 *\n$/)
      expect(
        traces('tbuild')
          .filter((trace) => trace.startsWith('nplab-'))
          .sort(),
      ).toEqual(['nplab-tbuild-client', 'nplab-tbuild-fabric', 'nplab-tbuild-far', 'nplab-tbuild-node-a'])
    } finally {
      expect(await lab.down()).toEqual([])
    }
    expect(traces('tbuild')).toEqual([])
    expect(await lab.down()).toEqual([])
    expect(machine()).toEqual(before)
  })

  test('nodes see the underlay and each other, but not the machine', async () => {
    using manifests = new Manifests(TWO_NODES)
    const before = machine()
    await using lab = await Lab.up({ name: 'tview', resources: manifests.dir, ...WITHOUT_AGENTS })
    for (const [node, name] of [
      ['node/a', 'a'],
      ['default/one', 'a'],
      ['node/b', 'b'],
    ] as const) {
      expect((await lab.mustRun(node, ['hostname'])).trim()).toBe(name)
    }
    const view = await lab.mustRun('node/a', [
      'sh',
      '-c',
      'ls /sys/class/net; ls /sys/fs/bpf; cat /proc/self/cgroup | grep ^0::; grep -c cgroup2 /proc/self/mounts',
    ])
    expect(view.split('\n').filter((line) => !line.startsWith('npl'))).toEqual([
      'eth0',
      'lo',
      'maps.debug',
      'progs.debug',
      '0::/exec',
      '1',
      '',
    ])
    // what a careless agent might do
    await lab.mustRun('node/a', [
      'sh',
      '-c',
      'mkdir /sys/fs/bpf/mine; echo x > /run/netplane/mine; echo 1 > /proc/sys/net/ipv4/ip_forward; mkdir /sys/fs/cgroup/mine',
    ])
    for (const path of ['/proc/sys/kernel/panic', '/proc/sys/vm/swappiness']) {
      expect((await lab.run('node/a', ['sh', '-c', `cat ${path} > ${path}`])).status).not.toBe(0)
    }
    expect(machine()).toEqual(before)
    expect(existsSync('/run/netplane/mine')).toBe(false)
    expect(await lab.mustRun('node/b', ['sh', '-c', 'ls /sys/fs/bpf /run/netplane; cat /proc/sys/net/ipv4/ip_forward'])).not.toContain(
      'mine',
    )
  })

  test('an exit code, output and input pass through; a missing place is an error', async () => {
    using manifests = new Manifests(TWO_NODES)
    await using lab = await Lab.up({ name: 'texec', resources: manifests.dir, ...WITHOUT_AGENTS })
    expect(await lab.run('one', ['sh', '-c', 'cat; echo bad >&2; exit 7'], { input: 'in' })).toEqual({
      status: 7,
      stdout: 'in',
      stderr: 'bad\n',
      timedOut: false,
    })
    const cli = await cliRun(['exec', 'shop/three', '--name', 'texec', '--', 'sh', '-c', 'ip -o -4 addr show eth0; exit 9'])
    expect(cli).toMatchObject({ status: 9, stdout: expect.stringContaining('10.31.1.3/32') as unknown })
    expect(() => lab.commandIn('default/none', ['true'])).toThrow('pod default/none: not in lab texec')
    expect((await cliRun(['exec', 'node/none', '--name', 'texec', '--', 'true'])).stderr).toContain('node none: not in lab texec')
  })

  test('that is brought up under the name of one that was never taken down has nothing of that one', async () => {
    using manifests = new Manifests(TWO_NODES)
    const killed = await Lab.up({ name: 'tagain', resources: manifests.dir, ...WITHOUT_AGENTS })
    await killed.mustRun('node/a', ['ip', 'address', 'add', '10.99.0.1/32', 'dev', 'lo'])
    await using lab = await Lab.up({ name: 'tagain', resources: manifests.dir, plain: true })
    expect(await lab.mustRun('node/a', ['ip', '-br', 'address', 'show', 'dev', 'lo'])).not.toContain('10.99.0.1')
    expect((await lab.status()).ok).toBe(true)
  })

  test('what was broken meanwhile is repaired', async () => {
    using manifests = new Manifests(TWO_NODES)
    await using lab = await Lab.up({ name: 'trepair', resources: manifests.dir, plain: true })
    killPid(holderOf('trepair', 'a') ?? 0, 'SIGKILL')
    await lab.mustRun('fabric', ['ip', 'link', 'del', 'p-b'])
    // their servers keep them alive without a name
    for (const name of ['pod-default.one', 'pod-shop.three']) execFileSync('ip', ['netns', 'del', `nplab-trepair-${name}`])
    await lab.mustRun('client', ['ip', 'addr', 'flush', 'dev', 'eth0'])
    await lab.sync()
    expect((await lab.status()).ok).toBe(true)
    const answer = await request(lab, { from: 'one', to: { proto: 'tcp', address: '10.31.1.3', port: 8080 } })
    expect(answer, JSON.stringify(answer)).toMatchObject({ ok: 1, refused: 0, pods: { three: 1 } })
    expect(await lab.mustRun('client', ['ip', '-br', 'addr'])).toContain('172.31.7.250/24')
  })

  test('without a server, or with one in a namespace that was replaced, is not ok until the next sync', async () => {
    using manifests = new Manifests(TWO_NODES)
    await using lab = await Lab.up({ name: 'tserver', resources: manifests.dir, plain: true })
    const three = podNamed(lab.topology, 'shop/three')
    expect(await stopDaemon(serverCgroup('tserver', three), 'SIGKILL', 5000)).toBe(true)
    expect((await lab.status()).ok).toBe(false)
    await lab.sync()
    expect((await lab.status()).ok).toBe(true)
    execFileSync('ip', ['netns', 'del', three.netns])
    execFileSync('ip', ['netns', 'add', three.netns])
    expect((await lab.status()).pods.map((one) => [one.key, one.server !== undefined])).toContainEqual(['shop/three', false])
    expect((await lab.status()).ok).toBe(false)
    await lab.sync()
    expect((await lab.status()).ok).toBe(true)
    // a line that was in the log before is no answer of the server that runs now
    expect(readFileSync(serverLog('tserver', three.key), 'utf8')).toBe('listening\n')
  })
})

describe('down', () => {
  test('after a SIGKILL of up at any point nothing is left, and up again is whole', async () => {
    using manifests = new Manifests(TWO_NODES)
    const before = machine()
    const args = ['up', '--resources', manifests.dir, '--name', 'tcrash', '--plain']
    for (const delay of [90, 110, 130, 150, 180, 210, 250, 300, 400]) {
      const { child, ended } = cliStart(args)
      await new Promise((resolve) => setTimeout(resolve, delay))
      child.kill('SIGKILL')
      await ended
      const again = delay < 210 ? undefined : await cliRun(args)
      expect(again?.status ?? 0, again?.stderr).toBe(0)
      expect(await cliRun(['down', '--name', 'tcrash']), `killed after ${delay} ms`).toMatchObject({ status: 0, stdout: '' })
      expect(traces('tcrash'), `killed after ${delay} ms`).toEqual([])
    }
    expect(machine()).toEqual(before)
  })

  test('ends processes in it, and names those that it did not start', async () => {
    using manifests = new Manifests(TWO_NODES)
    const lab = await Lab.up({ name: 'tbusy', resources: manifests.dir, ...WITHOUT_AGENTS })
    const ours = lab.spawn('one', ['sleep', '1000'])
    const theirs = spawn('ip', ['netns', 'exec', 'nplab-tbusy-client', 'sleep', '1001'])
    try {
      await waitFor(() => (readFileSync(`/proc/${theirs.pid ?? 0}/cmdline`, 'utf8').startsWith('sleep') ? true : undefined), {
        timeoutMs: HANG_MS,
      })
      const leftovers = await lab.down()
      expect(leftovers).toEqual([
        {
          kind: 'process',
          what: `pid ${theirs.pid ?? 0} (sleep 1001)`,
          why: 'not started by the lab; keeps nplab-tbusy-client alive until it ends',
        },
      ])
      expect(theirs.exitCode ?? theirs.signalCode).toBeNull()
      expect(ours.signalCode ?? (await new Promise((resolve) => ours.on('close', (_, signal) => resolve(signal))))).toBe('SIGKILL')
    } finally {
      theirs.kill('SIGKILL')
    }
    expect(traces('tbusy')).toEqual([])
  })
})

interface CliOutcome {
  readonly status: number | null
  readonly stdout: string
  readonly stderr: string
}

function cliStart(args: readonly string[]): { child: ReturnType<typeof spawn>; ended: Promise<CliOutcome> } {
  const child = spawn(process.execPath, ['--conditions=source', 'lab/main.ts', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let stdout = ''
  let stderr = ''
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  const ended = new Promise<CliOutcome>((resolve) => child.on('close', (status) => resolve({ status, stdout, stderr })))
  return { child, ended }
}

function cliRun(args: readonly string[]): Promise<CliOutcome> {
  return cliStart(args).ended
}
