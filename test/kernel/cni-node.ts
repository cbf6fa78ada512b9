// SPDX-License-Identifier: Apache-2.0
/** A node whose pods come by CNI: a runtime in a few lines, with the real shim. Layer: test. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentProcess, ScratchNode } from '../support/scratch-node.ts'

export interface Sandbox {
  readonly pod: string
  /** "<pod>-1" when not given */
  readonly id?: string
  readonly ifname?: string
}

export interface Outcome {
  readonly status: number
  readonly output: Readonly<Record<string, unknown>>
}

export class CniNode {
  readonly machine: ScratchNode
  readonly confDir: string
  readonly binDir: string

  constructor(machine: ScratchNode) {
    this.machine = machine
    this.confDir = join(machine.folder, 'net.d')
    this.binDir = join(machine.folder, 'bin')
  }

  agent(): AgentProcess {
    return this.machine.agent('--cni-conf-dir', this.confDir, '--cni-bin-dir', this.binDir)
  }

  /** One that serves. */
  async ready(): Promise<AgentProcess> {
    const agent = this.agent()
    await agent.event('dataplane.ready')
    await agent.until('the network configuration', () => existsSync(join(this.confDir, '10-netplane.conflist')))
    return agent
  }

  netns({ pod, id = `${pod}-1` }: Sandbox): string {
    return join(this.machine.folder, `netns-${id}`)
  }

  /** As runtimes make it: without anything in it. */
  makeNetns(sandbox: Sandbox): void {
    const path = this.netns(sandbox)
    this.machine.sh(`touch ${path}; unshare --net=${path} true`)
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

  call(command: string, sandbox: Sandbox, config: Readonly<Record<string, unknown>> = {}): Outcome {
    const { pod, id = `${pod}-1`, ifname = 'eth0' } = sandbox
    const environment = {
      CNI_COMMAND: command,
      CNI_CONTAINERID: id,
      CNI_NETNS: this.netns(sandbox),
      CNI_IFNAME: ifname,
      CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=${pod}`,
      CNI_PATH: this.binDir,
    }
    return this.raw(environment, JSON.stringify({ ...this.#config(), ...config }))
  }

  /** The shim with any environment and input. */
  raw(environment: Readonly<Record<string, string>>, input: string): Outcome {
    const words = Object.entries(environment).map(([name, value]) => quote(`${name}=${value}`))
    const command = `env ${words.join(' ')} ${join(this.binDir, 'netplane-cni')}`
    const text = this.machine.sh(`status=0; printf %s ${quote(input)} | { ${command} || status=$?; echo; echo "$status"; }`)
    return outcomeOf(text)
  }

  /** What the runtime reads, of its first plugin. */
  #config(): Readonly<Record<string, unknown>> {
    const list: unknown = JSON.parse(readFileSync(join(this.confDir, '10-netplane.conflist'), 'utf8'))
    if (typeof list !== 'object' || list === null || !('plugins' in list) || !Array.isArray(list.plugins)) throw new Error('no plugins')
    const first: unknown = list.plugins[0]
    return { ...(typeof first === 'object' ? first : {}), cniVersion: '1.0.0', name: 'netplane' }
  }
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
