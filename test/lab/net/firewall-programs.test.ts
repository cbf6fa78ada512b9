// SPDX-License-Identifier: Apache-2.0
/** Debian's own ufw, firewalld and docker, each in namespaces of its own: findings about them, and that the
 * remedies help. Root. Layer: test. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { beforeAll, expect, test } from 'vitest'
import { nodeCommand, packageRoot } from '#lib/base/os/package.ts'
import { isObject } from '#lib/base/object.ts'
import { hostArch } from '../../../testkit/base/arch.ts'
import { cached, keyOf } from '../../../testkit/base/cache.ts'
import { command } from '../../../testkit/base/command.ts'
import { listAt, textAt } from '../../../lab/raw.ts'

const PACKAGES = ['ufw', 'firewalld', 'docker.io', 'dbus', 'nftables', 'iptables']
const BUILD_MS = 10 * 60_000
const RANGES = ['10.1.0.0/16', 'fd00::/16']

let root = ''

beforeAll(async () => {
  // installed, they would be started on the machine
  const folder = await cached(`firewalls-${keyOf([hostArch(), PACKAGES])}`, async (half) => {
    await command('mmdebstrap', ['--quiet', '--variant=minbase', `--include=${PACKAGES.join(',')}`, 'bookworm', join(half, 'root')], {
      timeout: BUILD_MS,
    })
  })
  root = join(folder, 'root')
}, BUILD_MS + 60_000)

/** A shell in network, mount and process namespaces of its own, in which everything ends with it. */
class Machine implements AsyncDisposable {
  readonly #shell: ChildProcess
  readonly #lines: AsyncIterator<string>
  readonly #input: (text: string) => void

  constructor() {
    this.#shell = spawn(
      'unshare',
      ['--net', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child', 'sh', '-ec', SETUP, 'sh', root],
      {
        stdio: ['pipe', 'pipe', 'inherit'],
      },
    )
    const { stdin, stdout } = this.#shell
    if (stdin === null || stdout === null) throw new Error('no pipes')
    const lines: Interface = createInterface(stdout)
    this.#lines = lines[Symbol.asyncIterator]()
    // a shell that has ended says so by printing nothing more
    stdin.on('error', () => undefined)
    this.#input = (text) => stdin.write(text)
  }

  /** Prints what it printed; throws when it failed. */
  async sh(script: string): Promise<string> {
    this.#input(`(set -e; ${script}\n) </dev/null 2>&1; echo "== $?"\n`)
    const printed: string[] = []
    for (let next = await this.#lines.next(); next.done !== true; next = await this.#lines.next()) {
      if (next.value === '== 0') return printed.join('\n')
      if (/^== \d+$/.test(next.value)) break
      printed.push(next.value)
    }
    throw new Error(`${script}: ${printed.join('\n')}`)
  }

  /** In the root of the firewalls. */
  async inRoot(script: string): Promise<string> {
    return await this.sh(`chroot ${root} env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -ec '${script}'`)
  }

  /** "docker: packets of pods to other machines, ipv4", and the remedies. */
  async findings(): Promise<{ readonly said: readonly string[]; readonly remedies: readonly string[] }> {
    const script = nodeCommand(join(packageRoot(), 'test/support/find-firewalls.ts')).join(' ')
    const report: unknown = JSON.parse(await this.sh(script))
    expect(isObject(report) && report['unread']).toEqual([])
    const all = listAt(report, 'findings')
    const said = all.map((one) => `${(textAt(one, 'what') ?? '').split(' (')[0] ?? ''}, ${listAt(one, 'families').join()}`)
    return { said, remedies: [...new Set(all.map((one) => textAt(one, 'remedy') ?? ''))] }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#shell, 'close')
    this.#shell.kill('SIGKILL')
    await ended
  }
}

/** $1: the root. What is written there is this machine's alone. */
const SETUP = `
  mount --make-rprivate /
  mount -t tmpfs tmpfs /run
  mkdir /run/upper /run/work
  mount -t overlay overlay -o lowerdir=$1,upperdir=/run/upper,workdir=/run/work $1
  mount -t proc proc $1/proc
  mount -t sysfs sysfs $1/sys
  mount --rbind /sys/fs/cgroup $1/sys/fs/cgroup
  mount -t tmpfs tmpfs $1/run
  mkdir -p $1/var/lib/docker
  mount -t tmpfs tmpfs $1/var/lib/docker
  mount --bind /dev $1/dev
  ip link set lo up
  exec sh`

/** The commands of a remedy, as an administrator would type them. */
function commandsOf(remedy: string): string[] {
  const commands = remedy.replace(/, where .*$/, '').split(/ && | and |; /)
  return commands.flatMap((one) => (one.includes('RANGE') ? RANGES.map((range) => one.replaceAll('RANGE', range)) : [one]))
}

const until = (condition: string): string => `for i in $(seq 300); do ${condition} >/dev/null 2>&1 && exit 0; sleep 0.1; done; exit 1`

const INTO_NODE = 'packets of pods to processes of this node'
const OUT = 'packets of pods to other machines'
const IN = 'packets of other machines to pods'

test.each([
  {
    name: 'ufw',
    start: ['ufw --force enable'],
    says: [`${INTO_NODE}, ipv4`, `${INTO_NODE}, ipv6`, `${OUT}, ipv4`, `${OUT}, ipv6`, `${IN}, ipv4`, `${IN}, ipv6`],
  },
  {
    name: 'firewalld',
    start: [
      'mkdir -p /run/dbus; dbus-daemon --system --fork --nopidfile',
      'firewalld --nofork --nopid >/run/log 2>&1 &',
      until('firewall-cmd --state'),
    ],
    says: [`${INTO_NODE}, ipv4,ipv6`, `${OUT}, ipv4,ipv6`, `${IN}, ipv4,ipv6`],
  },
  {
    name: 'docker',
    start: ['dockerd --storage-driver=vfs >/run/log 2>&1 &', until('docker version')],
    says: [`${OUT}, ipv4`, `${IN}, ipv4`],
  },
])('$name: findings say what it drops, and nothing after the remedies', { timeout: 120_000 }, async ({ start, says }) => {
  await using machine = new Machine()
  for (const line of start) await machine.inRoot(line)
  const { said, remedies } = await machine.findings()
  expect(said.toSorted()).toEqual(says.toSorted())
  for (const line of remedies.flatMap(commandsOf)) await machine.inRoot(line)
  expect(await machine.findings()).toEqual({ said: [], remedies: [] })
})
