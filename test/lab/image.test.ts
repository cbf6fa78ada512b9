// SPDX-License-Identifier: Apache-2.0
/** The image's root file system, made here as its Dockerfile makes it: every entry point runs in it, with no more
 * rights than deploy/ gives. Layer: test. */
import { execFileSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadAll } from 'js-yaml'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isObject } from '#lib/base/object.ts'
import { waitFor } from '../../lab/wait.ts'
import { imageRoot } from '../../testkit/base/image.ts'
import type { ScratchNode } from '../../testkit/base/scratch-node.ts'
import { links, makeNode } from '../kernel/agent/node.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'

const TOP = fileURLToPath(new URL('../../', import.meta.url))
const BUILD_MS = 10 * 60_000
const READY_MS = 60_000

let folder = ''
let root = ''
let machine: ScratchNode

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-image-'))
  root = join(folder, 'root')
  await imageRoot(root)
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
  const daemonSet = loadAll(readFileSync(join(TOP, 'deploy/manifests/netplane.yaml'), 'utf8')).find(
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
  ['netplane-controllers --version', /^netplane-controllers \d+\.\d+\.\d+$/m],
  ['netplane-operator --version', /^netplane-operator \d+\.\d+\.\d+$/m],
  ['netplanectl --version', /^netplanectl \d+\.\d+\.\d+$/m],
  ['netplane-agent --node n1 --resources /tmp/resources --print-desired', /"workloads"/],
  ['iptables-legacy-save --version', /legacy/],
  ['iptables-nft-save --version', /nf_tables/],
  ['nft --version', /nftables/],
  ["sh -c 'netplane-datastore /run/none || echo not ready'", /^the datastore is locked.*\nnot ready$/m],
  ["sh -c 'netplane-datastore /run && echo ready'", /^ready$/m],
])('%s', (command, says) => {
  expect(run(command)).toMatch(says)
})

test('the container of the datastore rests as its first process, and ends when it is told to', () => {
  const program = join(root, 'usr/local/bin/netplane-datastore')
  const rests = `unshare --pid --fork ${program} & sleep 1; kill -TERM $(pgrep -P $!); wait $!; echo ended $?`
  expect(execFileSync('timeout', ['20', 'sh', '-c', rests], { encoding: 'utf8' })).toBe('ended 0\n')
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

test('a support bundle has all of the network in it, and goes to standard output where nothing can be written', () => {
  const parts = run('netplanectl node bundle --json --output /tmp/bundle.tar.gz')
  const read = [...parts.matchAll(/"name": "(net\/[^"]+)"[^}]*"bytes": (\d+)/g)]
  expect(read.length).toBeGreaterThan(8)
  // a node that has just been made: no process listens, no neighbour is known
  const empty = ['net/listening.txt', 'net/neighbours.txt']
  expect(read.flatMap(([, name = '', bytes]) => (bytes === '0' && !empty.includes(name) ? [name] : []))).toEqual([])
  expect(run("sh -c 'netplanectl node bundle --output - | od -An -tx1 -N2'").trim()).toBe('1f 8b')
  expect(run("sh -c 'cd /; netplanectl node bundle 2>&1 || true'")).toContain('cannot be written to (EROFS)')
})

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

describe('the init step', () => {
  const bpf = 'mounted bpf at /sys/fs/bpf'
  const cgroup = 'mounted cgroup2 at /run/netplane/cgroup'
  const nodeMount = 'mount -t cgroup2 cgroup2 $root/host/cgroup'

  test.each([
    { how: 'the node has it, alone', node: nodeMount },
    { how: 'the node has it, and its first process cannot be asked', node: `${nodeMount}; umount $root/host/proc/1/ns/cgroup` },
    { how: 'the node has it, beside those of v1', node: `${nodeMount}/unified` },
    { how: 'the node has none', node: ':' },
    {
      how: 'an earlier one has mounted its own',
      node: nodeMount,
      before: 'mount -t cgroup2 cgroup2 $0/run/netplane/cgroup;',
      also: ["unmounted /run/netplane/cgroup: it was not the node's root"],
    },
  ])('mounts what is missing once, and the root of all of the node: $how', async ({ node, before = '', also = [] }) => {
    const says = [bpf, ...also, cgroup].join('\n')
    expect(await initStep(node, before)).toEqual([says, '', String(statSync(machine.cgroup).ino)])
  })
})

/** What it says, and what when it runs again; then the number of the root it has mounted. It is in a cgroup and
 * cgroup namespace below the node's. */
async function initStep(node: string, before: string): Promise<string[]> {
  const container = join(machine.cgroup, 'container')
  const steps = `
    root=${root}
    mount --bind $root $root
    mount -t proc proc $root/proc
    for place in run sys host/proc host/cgroup; do mount -t tmpfs tmpfs $root/$place; done
    mkdir -p $root/host/proc/1/ns $root/host/cgroup/unified $root/sys/fs/bpf $root/run/netplane/cgroup
    # who may not look into the first process of this machine is its own first one
    touch $root/host/proc/1/ns/cgroup
    mount --bind /proc/self/ns/cgroup $root/host/proc/1/ns/cgroup
    ${node}
    mkdir ${container}
    echo $$ > ${container}/cgroup.procs
    unshare --cgroup sh -ec '${before} chroot $0 netplane-mounts; echo --; chroot $0 netplane-mounts' $root
    echo --
    stat -c %i $root/run/netplane/cgroup`
  try {
    const output = machine.sh(`echo $$ > ${machine.cgroup}/cgroup.procs; exec unshare --cgroup --mount sh -ec ${quoted(steps)}`)
    return output.split('--').map((part) => part.trim())
  } finally {
    // an ended process leaves its cgroup a moment later
    await waitFor(() => (removed(container) ? true : undefined), { timeoutMs: HANG_MS })
  }
}

function removed(folder: string): boolean {
  try {
    rmdirSync(folder)
    return true
  } catch {
    return false
  }
}
