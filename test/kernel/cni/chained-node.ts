// SPDX-License-Identifier: Apache-2.0
/** A node whose pods another CNI plugin plugs in: a runtime in a few lines that runs the first list of its folder,
 * with the real plugins, and a machine in the network outside. Layer: test. */
import type { ChildProcess } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '#lib/base/object.ts'
import { ScratchNode, type AgentProcess } from '../../../testkit/base/scratch-node.ts'

/** Of Debian's containernetworking-plugins. */
const PLUGINS = '/usr/lib/cni'
const THEIRS = '10-theirs.conflist'

export const OUTSIDE = { v4: '192.0.2.9', v6: 'fd00::9' } as const
export const NODE = { v4: '192.0.2.1', v6: 'fd00::1' } as const

export type Fields = Readonly<Record<string, unknown>>

export interface Result {
  readonly status: number
  readonly output: Fields
}

export class ChainedNode implements AsyncDisposable {
  readonly machine: ScratchNode
  readonly confDir: string
  readonly binDir: string
  readonly #results = new Map<string, Fields>()
  readonly #children: ChildProcess[] = []

  private constructor(machine: ScratchNode) {
    this.machine = machine
    this.confDir = join(machine.folder, 'net.d')
    this.binDir = join(machine.folder, 'bin')
  }

  static async make(): Promise<ChainedNode> {
    const of = new ChainedNode(await ScratchNode.make())
    for (const folder of [of.confDir, of.binDir]) mkdirSync(folder)
    for (const name of readdirSync(PLUGINS)) symlinkSync(join(PLUGINS, name), join(of.binDir, name))
    of.machine.sh(`
      mkdir -p /run/netns
      mount -t tmpfs tmpfs /run/netns
      sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
      ip netns add outside
      ip link add eth0 type veth peer name eth0 netns outside
      ip addr add ${NODE.v4}/24 dev eth0
      ip addr add ${NODE.v6}/64 dev eth0 nodad
      ip link set eth0 up
      ip route add default via ${OUTSIDE.v4}
      ip -n outside link set lo up
      ip -n outside addr add ${OUTSIDE.v4}/24 dev eth0
      ip -n outside addr add ${OUTSIDE.v6}/64 dev eth0 nodad
      ip -n outside link set eth0 up
      ip -n outside route add 10.0.0.0/8 via ${NODE.v4}
      ip -n outside route add fd00:3::/64 via ${NODE.v6}`)
    return of
  }

  /** What the other's installer puts there. */
  writeTheirs(list: Fields): void {
    writeFileSync(join(this.confDir, THEIRS), JSON.stringify(list))
  }

  get theirs(): string {
    return readFileSync(join(this.confDir, THEIRS), 'utf8')
  }

  agent(): AgentProcess {
    return this.machine.agent('--cni-conf-dir', this.confDir, '--cni-bin-dir', this.binDir, '--cni-chained')
  }

  async ready(): Promise<AgentProcess> {
    const agent = this.agent()
    await agent.event('dataplane.ready')
    await agent.until('the list with us in it', () => this.types().includes('netplane-cni'))
    return agent
  }

  /** Of the plugins that the runtime would run. */
  types(): readonly unknown[] {
    return this.#list().plugins.map((plugin) => plugin['type'])
  }

  /** All of the list; what fails is taken back, as runtimes do. Returns the last plugin's answer. */
  add(pod: string, more: Fields = {}): Result {
    this.machine.sh(`ip netns add ${pod}; ip -n ${pod} link set lo up`)
    let last: Result = { status: 0, output: {} }
    for (const plugin of this.#list().plugins) {
      last = this.#run('ADD', pod, {
        ...plugin,
        ...(last.output['cniVersion'] === undefined ? {} : { prevResult: last.output }),
        ...toldTo(plugin, more),
      })
      if (last.status !== 0) {
        this.del(pod)
        return last
      }
      this.#results.set(pod, last.output)
    }
    return last
  }

  del(pod: string, more: Fields = {}): readonly Result[] {
    const prevResult = this.#results.get(pod)
    const outcomes = this.#list()
      .plugins.toReversed()
      .map((plugin) => this.#run('DEL', pod, { ...plugin, ...toldTo(plugin, more), ...(prevResult && { prevResult }) }))
    this.machine.sh(`ip netns del ${pod}`)
    return outcomes
  }

  /** By the last plugin, which is ours. */
  ask(command: string, pod: string, more: Fields = {}): Result {
    return this.#run(command, pod, {
      type: 'netplane-cni',
      socket: join(this.machine.state, 'cni.sock'),
      prevResult: this.#results.get(pod),
      ...more,
    })
  }

  /** Of the family. */
  address(pod: string, family: 'v4' | 'v6'): string {
    const ips: unknown = this.#results.get(pod)?.['ips']
    const all = (Array.isArray(ips) ? ips : []).map((ip: unknown) => (isObject(ip) ? String(ip['address']).replace(/\/.*/, '') : ''))
    const found = all.find((address) => address.includes(':') === (family === 'v6'))
    if (found === undefined) throw new Error(`${pod} has no address of ${family}`)
    return found
  }

  /** Waits until the kernel may ask for neighbours by IPv6: not while an address of the device, a bridge's own, is
   * looked for elsewhere. */
  settle(): void {
    this.machine.sh('for try in $(seq 100); do [ -z "$(ip -6 -o addr show tentative)" ] && exit; sleep 0.1; done; exit 1')
  }

  pings(from: string | undefined, address: string): boolean {
    return this.pingsOf([{ from, address }])[0] === true
  }

  /** Which of them are answered, if only once of three times: neighbours have to be found first, on a machine with
   * much to do. All ask at once, for what is not answered takes its time. */
  pingsOf(asked: readonly { readonly from: string | undefined; readonly address: string }[]): readonly boolean[] {
    const lines = asked.map(
      ({ from, address }, at) => `{ ${enter(from)}ping -c 3 -i 0.4 -W 1 ${address} >/dev/null 2>&1 && echo ${at}; } &`,
    )
    const answered = new Set(this.machine.sh([...lines, 'wait'].join('\n')).split('\n'))
    return asked.map((_, at) => answered.has(String(at)))
  }

  /** What is answered; undefined: nothing is, in time. */
  get(from: string | undefined, address: string, port: number): string | undefined {
    const url = `http://${address.includes(':') ? `[${address}]` : address}:${port}/`
    const text = this.machine.sh(`${enter(from)}curl -gs --fail --max-time 2 '${url}' || true`)
    return text === '' ? undefined : text
  }

  /** Answers with its name and the client's address; resolves when it listens. */
  async serve(place: string, port: number): Promise<void> {
    const script = `require('http').createServer((q, r) => r.end('${place} ' + q.socket.remoteAddress.replace('::ffff:', '')))
      .listen(${port}, '::', () => console.log('listens'))`
    const child = this.machine.spawn(['ip', 'netns', 'exec', place, process.execPath, '-e', script])
    this.#children.push(child)
    await new Promise((resolve, reject) => {
      child.stdout?.once('data', resolve)
      child.once('exit', () => {
        reject(new Error(`no server in ${place}`))
      })
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL')
    await this.machine[Symbol.asyncDispose]()
  }

  #list(): { readonly fields: Fields; readonly plugins: readonly Fields[] } {
    const [first] = readdirSync(this.confDir)
      .filter((name) => name.endsWith('.conflist'))
      .sort()
    const raw: unknown = JSON.parse(readFileSync(join(this.confDir, first ?? ''), 'utf8'))
    if (!isObject(raw) || !Array.isArray(raw['plugins'])) throw new Error('no list')
    const { cniVersion, name } = raw
    return { fields: raw, plugins: raw['plugins'].map((plugin: Fields) => ({ ...plugin, cniVersion, name })) }
  }

  #run(command: string, pod: string, config: Fields): Result {
    const { cniVersion, name } = this.#list().fields
    const words = [
      ...[
        `CNI_COMMAND=${command}`,
        `CNI_CONTAINERID=${pod}-1`,
        `CNI_NETNS=/run/netns/${pod}`,
        'CNI_IFNAME=eth0',
        `CNI_PATH=${this.binDir}`,
      ],
      `CNI_ARGS='IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=${pod}'`,
    ]
    const input = JSON.stringify({ cniVersion, name, ...config })
    const script = `status=0; printf %s '${input}' | env ${words.join(' ')} ${join(this.binDir, String(config['type']))} || status=$?; echo; echo "$status"`
    const lines = this.machine.sh(script).trimEnd().split('\n')
    const status = Number(lines.pop())
    const body = lines.join('\n').trim()
    const output: unknown = body === '' ? {} : JSON.parse(body)
    return { status, output: isObject(output) ? output : {} }
  }
}

/** In front of a command that runs in a pod, or outside; undefined: on the node. */
function enter(place: string | undefined): string {
  return place === undefined ? '' : `ip netns exec ${place} `
}

/** Runtimes tell ports and the like to those plugins that say they can do something with them. */
function toldTo(plugin: Fields, { runtimeConfig, ...more }: Fields): Fields {
  return 'capabilities' in plugin && runtimeConfig !== undefined ? { ...more, runtimeConfig } : more
}
