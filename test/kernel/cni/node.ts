// SPDX-License-Identifier: Apache-2.0
/** A node whose pods come by CNI: a runtime in a few lines, with the real shim. Layer: test. */
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '#lib/base/object.ts'
import { parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import { workloadInterface } from '#lib/model/pod.ts'
import { ScratchNode, type AgentProcess } from '../../../testkit/base/scratch-node.ts'
import { felix, node } from '../agent/manifests.ts'

export interface Sandbox {
  readonly pod: string
  /** "<pod>-1" when not given */
  readonly id?: string
  readonly ifname?: string
  /** of the pod; not said when not given */
  readonly uid?: string
}

export interface Outcome {
  readonly status: number
  readonly output: Readonly<Record<string, unknown>>
}

const RANGE = ['10.1.1.0/28', 'fd00:1::/112']

export class CniNode {
  readonly machine: ScratchNode
  readonly confDir: string
  readonly binDir: string

  /** With a network card, and pods a and b that wait for their addresses. */
  static async make(): Promise<CniNode> {
    const machine = await ScratchNode.make()
    machine.sh(`
      ip link add eth0 type veth peer name wire0
      ip addr add 192.0.2.1/24 dev eth0
      ip addr add fd00::1/64 dev eth0 nodad
      ip link set eth0 up
      ip link set wire0 up`)
    const self = node('n1', '192.0.2.1', '')
    machine.put('nodes.json', [{ ...(typeof self === 'object' ? self : {}), spec: { podCIDRs: RANGE } }])
    machine.put('felix.json', [felix(machine.cgroup)])
    machine.put('pods.json', [waitingPod('a'), waitingPod('b')])
    return new CniNode(machine)
  }

  private constructor(machine: ScratchNode) {
    this.machine = machine
    this.confDir = join(machine.folder, 'net.d')
    this.binDir = join(machine.folder, 'bin')
  }

  agent(...more: readonly string[]): AgentProcess {
    return this.machine.agent(...this.#flags, ...more)
  }

  /** One that serves. */
  async ready(...more: readonly string[]): Promise<AgentProcess> {
    const agent = this.agent(...more)
    await agent.event('dataplane.ready')
    await this.#installed(agent)
    return agent
  }

  /** One that serves, and whose log is not read. */
  async readyUnread(): Promise<AgentProcess> {
    const agent = this.machine.agentUnread(...this.#flags)
    await this.#installed(agent)
    return agent
  }

  async #installed(agent: AgentProcess): Promise<void> {
    await agent.until('the network configuration', () => existsSync(join(this.confDir, '10-netplane.conflist')))
  }

  netns({ pod, id = `${pod}-1` }: Sandbox): string {
    return join(this.machine.folder, `netns-${id}`)
  }

  /** As runtimes make it: without anything in it. */
  makeNetns(sandbox: Sandbox): void {
    const path = this.netns(sandbox)
    this.machine.sh(`touch ${path}; unshare --net=${path} true`)
  }

  /** Plugs a pod in as the plugin of an older version has, with this address. Returns its device. */
  plugOld(sandbox: Sandbox, address: string): string {
    const host = workloadInterface({ namespace: 'default', name: sandbox.pod })
    this.makeNetns(sandbox)
    this.machine.sh(`
      ip link add ${host} address ee:ee:ee:ee:ee:ee type veth peer name eth0 netns ${this.netns(sandbox)}
      ip link set ${host} up
      sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.${host}.proxy_arp=1
      ip route add ${address} dev ${host} scope link`)
    this.inPod(
      sandbox,
      `ip link set lo up
      ip link set eth0 up
      ip addr add ${address}/32 dev eth0
      ip route add 169.254.1.1 dev eth0 scope link
      ip route add default via 169.254.1.1 dev eth0`,
    )
    return host
  }

  dropNetns(sandbox: Sandbox): void {
    this.machine.sh(`umount ${this.netns(sandbox)}; rm ${this.netns(sandbox)}`)
  }

  /** Runs in the pod's network namespace. */
  inPod(sandbox: Sandbox, script: string): string {
    return this.machine.sh(`nsenter --net=${this.netns(sandbox)} sh -ec '${script}'`)
  }

  succeeds(sandbox: Sandbox, script: string): boolean {
    return this.inPod(sandbox, `if ${script} >/dev/null 2>&1; then echo yes; else echo no; fi`).trim() === 'yes'
  }

  add(sandbox: Sandbox, config: Readonly<Record<string, unknown>> = {}): Outcome {
    this.makeNetns(sandbox)
    return this.call('ADD', sandbox, config)
  }

  /** Goes on by itself; what it answers, once it has. */
  beginAdd(sandbox: Sandbox, config: Readonly<Record<string, unknown>> = {}): () => Outcome | undefined {
    this.makeNetns(sandbox)
    const file = join(this.machine.folder, 'answer')
    rmSync(file, { force: true })
    const script = scriptOf(this.#environment('ADD', sandbox), {
      shim: this.#shim,
      input: JSON.stringify({ ...this.#config(), ...config }),
    })
    this.machine.sh(`{ { ${script} } > ${file}.part; mv ${file}.part ${file}; } > /dev/null 2>&1 &`)
    return () => (existsSync(file) ? outcomeOf(readFileSync(file, 'utf8')) : undefined)
  }

  call(command: string, sandbox: Sandbox, config: Readonly<Record<string, unknown>> = {}): Outcome {
    return this.raw(this.#environment(command, sandbox), JSON.stringify({ ...this.#config(), ...config }))
  }

  /** The shim with any environment and input. */
  raw(environment: Readonly<Record<string, string>>, input: string): Outcome {
    return outcomeOf(this.machine.sh(scriptOf(environment, { shim: this.#shim, input })))
  }

  /** What is on disk of sandboxes. */
  saved(): string[] {
    const folder = join(this.machine.state, 'cni', 'sandboxes')
    return existsSync(folder) ? readdirSync(folder).sort() : []
  }

  /** The sandboxes that have addresses of the range. */
  held(range = '10-1-1-0-28'): string[] {
    const raw: unknown = JSON.parse(readFileSync(join(this.machine.state, 'cni', 'ranges', `${range}.json`), 'utf8'))
    return [...parseIPBlock(isObject(raw) ? raw : {}).held.values()].map(({ containerId }) => containerId)
  }

  get #flags(): readonly string[] {
    return ['--cni-conf-dir', this.confDir, '--cni-bin-dir', this.binDir]
  }

  get #shim(): string {
    return join(this.binDir, 'netplane-cni')
  }

  #environment(command: string, sandbox: Sandbox): Readonly<Record<string, string>> {
    const { pod, id = `${pod}-1`, ifname = 'eth0', uid } = sandbox
    return {
      CNI_COMMAND: command,
      CNI_CONTAINERID: id,
      CNI_NETNS: this.netns(sandbox),
      CNI_IFNAME: ifname,
      CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=${pod}${uid === undefined ? '' : `;K8S_POD_UID=${uid}`}`,
      CNI_PATH: this.binDir,
    }
  }

  /** What the runtime reads, of its first plugin. */
  #config(): Readonly<Record<string, unknown>> {
    const list: unknown = JSON.parse(readFileSync(join(this.confDir, '10-netplane.conflist'), 'utf8'))
    if (typeof list !== 'object' || list === null || !('plugins' in list) || !Array.isArray(list.plugins)) throw new Error('no plugins')
    const first: unknown = list.plugins[0]
    return { ...(typeof first === 'object' ? first : {}), cniVersion: '1.0.0', name: 'netplane' }
  }
}

export function waitingPod(
  name: string,
  more: {
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly ips?: readonly string[]
    readonly uid?: string
  } = {},
): unknown {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: more.uid, labels: more.labels ?? {}, annotations: more.annotations ?? {} },
    spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
    status: { phase: 'Pending', podIPs: (more.ips ?? []).map((ip) => ({ ip })) },
  }
}

export function ips({ output }: Outcome): string[] {
  const { ips } = output
  return Array.isArray(ips) ? ips.map((ip: { readonly address: string }) => ip.address) : []
}

/** "11: why" */
export function refusalOf({ output }: Outcome): string {
  return `${String(output['code'])}: ${String(output['msg'])}`
}

/** Prints the answer and, on a line of its own, the exit status. */
function scriptOf(
  environment: Readonly<Record<string, string>>,
  { shim, input }: { readonly shim: string; readonly input: string },
): string {
  const words = Object.entries(environment).map(([name, value]) => quote(`${name}=${value}`))
  return `status=0; printf %s ${quote(input)} | { env ${words.join(' ')} ${shim} || status=$?; echo; echo "$status"; };`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

function outcomeOf(text: string): Outcome {
  const lines = text.trimEnd().split('\n')
  const status = Number(lines.pop())
  const body = lines.join('\n').trim()
  const output: unknown = body === '' ? {} : JSON.parse(body)
  return { status, output: typeof output === 'object' && output !== null ? { ...output } : {} }
}
