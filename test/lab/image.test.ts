// SPDX-License-Identifier: Apache-2.0
/** The image's root file system, made here as its Dockerfile makes it: every entry point runs in it, with no more rights than deploy/ gives. Layer: test. */
import { execFileSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadAll } from 'js-yaml'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isObject } from '#lib/base/object.ts'
import { waitFor } from '../../lab/wait.ts'
import type { ScratchNode } from '../support/scratch-node.ts'
import { links, makeNode } from '../kernel/agent-node.ts'

const TOP = fileURLToPath(new URL('../../', import.meta.url))
const BUILD_MS = 10 * 60_000
const READY_MS = 60_000

let folder = ''
let root = ''
let machine: ScratchNode

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-image-'))
  root = join(folder, 'root')
  for (const part of ['packages', 'files'])
    execFileSync(join(TOP, 'scripts/image/rootfs'), [part, root], { stdio: ['ignore', 'ignore', 'inherit'] })
  machine = await makeNode()
}, BUILD_MS)

afterAll(async () => {
  await machine[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** As a runtime sees to it: everything read-only but what is mounted. */
function mounts(): string {
  return `
    root=${root}
    mount --bind $root $root
    mount -t proc proc $root/proc
    mount -t tmpfs tmpfs $root/run
    mount -t tmpfs tmpfs $root/tmp
    mkdir -p $root/run/netplane/cgroup $root/tmp/resources
    mount --bind ${machine.cgroup} $root/run/netplane/cgroup
    mount --bind ${machine.resources} $root/tmp/resources
    mount --rbind /sys $root/sys
    mount --bind $root/proc/sys $root/proc/sys
    mount -o remount,bind,ro $root/proc/sys
    mount -o remount,bind,ro $root`
}

/** The names of the daemon set's capabilities, as setpriv has them. */
function capabilities(): string {
  const daemonSet = loadAll(readFileSync(join(TOP, 'deploy/netplane.yaml'), 'utf8')).find(
    (one) => isObject(one) && one['kind'] === 'DaemonSet',
  )
  const added = /"add":(\[[^\]]*\])/.exec(JSON.stringify(daemonSet))?.[1] ?? '[]'
  const names: unknown = JSON.parse(added)
  return Array.isArray(names) ? ['-all', ...names.map((name) => `+${String(name).toLowerCase()}`)].join(',') : '-all'
}

/** In mounts of its own, with a clean environment. */
function inImage(command: string): readonly string[] {
  const environment = 'env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin FELIX_CGROUPV2PATH=/run/netplane/cgroup'
  const rights = `setpriv --bounding-set=${capabilities()} --inh-caps=-all`
  return ['unshare', '--mount', 'sh', '-ec', `${mounts()}\nexec chroot $root ${environment} ${rights} ${command}`]
}

function run(command: string): string {
  return machine.sh(inImage(command).map(quoted).join(' '))
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

test.each([
  ['netplane-agent --version', /^netplane-agent \d+\.\d+\.\d+$/m],
  ['netplanectl version', /^netplanectl \d+\.\d+\.\d+$/m],
  ['netplane-agent --node n1 --resources /tmp/resources --print-desired', /"workloads"/],
  ['iptables-legacy-save --version', /legacy/],
  ['iptables-nft-save --version', /nf_tables/],
  ['nft --version', /nftables/],
])('%s', (command, says) => {
  expect(run(command)).toMatch(says)
})

test('the agent loads its programs and is ready, with the capabilities of the daemon set and nothing else to write to', async () => {
  const agent = start('netplane-start --node n1 --resources /tmp/resources')
  try {
    const ready = (): Promise<string | undefined> => {
      const isReady = (): boolean => machine.sh('curl -s http://127.0.0.1:9099/readiness || true').includes('\"ready\":true')
      return Promise.resolve(agent.child.exitCode !== null ? 'ended' : isReady() ? 'ready' : undefined)
    }
    expect(await waitFor(ready, { timeoutMs: READY_MS, everyMs: 200 }), agent.log()).toBe('ready')
    expect(Object.keys(links(machine)).filter((name) => name.startsWith('cgroup:')).length, agent.log()).toBeGreaterThan(0)
    expect(machine.sh('cat /proc/sys/net/ipv4/ip_forward').trim()).toBe('1')
    const config: unknown = JSON.parse(machine.sh('curl -s http://127.0.0.1:9099/config'))
    expect(config).toMatchObject({ fields: { cgroupV2Path: { value: '/run/netplane/cgroup', from: 'environment' } } })
  } finally {
    agent.child.kill('SIGTERM')
    await agent.closed
  }
  expect(run('netplane-agent --cleanup --cgroup /run/netplane/cgroup')).toMatch(/sysctl|link|map/)
}, 120_000)

function start(command: string): { readonly child: ChildProcess; readonly log: () => string; readonly closed: Promise<unknown> } {
  const child = machine.spawn(inImage(command))
  const closed = once(child, 'close')
  let log = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (data: Buffer) => {
      log += data.toString()
    })
  return { child, closed, log: () => log.slice(-4000) }
}

test('the init step mounts what is missing, once', () => {
  const steps = `
    root=${root}
    mount --bind $root $root
    mount -t tmpfs tmpfs $root/run
    mount -t tmpfs tmpfs $root/sys
    # who may not look into the first process of this machine is its own first one
    mount -t tmpfs tmpfs $root/host/proc
    mkdir -p $root/host/proc/1/ns
    touch $root/host/proc/1/ns/cgroup
    mount --bind /proc/self/ns/cgroup $root/host/proc/1/ns/cgroup
    mkdir -p $root/sys/fs/bpf $root/run/netplane
    chroot $root netplane-mounts; echo --; chroot $root netplane-mounts
    echo --; ls $root/run/netplane/cgroup | grep -c cgroup.procs`
  const output = machine.sh(`unshare --mount sh -ec ${quoted(steps)}`)
  expect(output.split('--').map((part) => part.trim())).toEqual([
    'mounted bpf at /sys/fs/bpf\nmounted cgroup2 at /run/netplane/cgroup',
    '',
    '1',
  ])
})
