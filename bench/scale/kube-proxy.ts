// SPDX-License-Identifier: Apache-2.0
/** The real kube-proxy in nftables mode, in the namespace we are in. Layer: bench. */
import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '#lib/base/clock.ts'
import { InternalError } from '#lib/base/errors.ts'
import { runCommand } from '../../lab/processes/command.ts'
import { waitFor } from '../../lab/wait.ts'
import { proxyFlags, stopKubeProxy } from '../../testkit/kubernetes/kube-proxy/process.ts'

const TABLE = ['ip', 'kube-proxy'] as const
const LOOK_MS = 120_000
const POD_CIDR = '10.0.0.0/8'

export interface KubeProxyPlace {
  readonly programs: string
  readonly kubeconfig: string
  readonly node: string
  readonly log: string
}

export class KubeProxyProcess {
  readonly #child: ChildProcess
  readonly #startedAt: number
  readonly pid: number

  private constructor(child: ChildProcess, startedAt: number) {
    if (child.pid === undefined) throw new InternalError('kube-proxy did not start')
    this.pid = child.pid
    this.#child = child
    this.#startedAt = startedAt
  }

  static start({ programs, kubeconfig, node, log }: KubeProxyPlace): KubeProxyProcess {
    const file = openSync(log, 'a')
    const flags = proxyFlags({ kubeconfig, node, mode: 'nftables', podCidrs: [POD_CIDR] })
    const startedAt = systemClock.now()
    const child = spawn(join(programs, 'kube-proxy'), flags, { stdio: ['ignore', file, file] })
    closeSync(file)
    return new KubeProxyProcess(child, startedAt)
  }

  /** Seconds from start until its map has all of these. It writes a family in one go. */
  async serves(addresses: readonly string[], timeoutMs: number): Promise<number> {
    const ready = await waitFor(
      async () => {
        if (this.#child.exitCode !== null) return 'ended'
        for (const address of addresses) if ((await this.#element(address)) === undefined) return undefined
        return 'ready'
      },
      { timeoutMs, everyMs: 50 },
    )
    if (ready !== 'ready') throw new InternalError(`kube-proxy ${ready ?? 'has no rules in time'}`)
    return (systemClock.now() - this.#startedAt) / 1000
  }

  /** The chain that chooses an endpoint of the service with this address. */
  async chainOf(address: string): Promise<string> {
    // nft gives up when kube-proxy writes meanwhile, which takes it long
    const element = await waitFor(() => this.#element(address), { timeoutMs: LOOK_MS, everyMs: 100 })
    const chain = /: goto (\S+)/.exec(element ?? '')?.[1]
    if (chain === undefined) throw new InternalError(`kube-proxy does not serve ${address}`)
    return chain
  }

  /** Looks into a chain for this text, but only after another round of kube-proxy: with 10,000 services a look takes
   * nft a second of CPU. */
  async lookIn(chain: string, text: string): Promise<() => Promise<boolean>> {
    let before = await this.#rounds()
    return async () => {
      const rounds = await this.#rounds()
      if (rounds === before) return false
      const { status, stdout } = await runCommand(['nft', 'list', 'chain', ...TABLE, chain])
      // else it is asked again
      if (status === 0) before = rounds
      return stdout.includes(text)
    }
  }

  /** Another text after each round. */
  async #rounds(): Promise<string> {
    const page = await (await fetch('http://127.0.0.1:10249/metrics')).text()
    return page
      .split('\n')
      .filter((line) => line.startsWith('kubeproxy_sync_proxy_rules_last_timestamp_seconds'))
      .join()
  }

  /** With all that it has written. */
  async end(): Promise<void> {
    await stopKubeProxy(this.#child)
    for (const family of ['ip', 'ip6']) await runCommand(['nft', 'delete', 'table', family, 'kube-proxy'])
  }

  async #element(address: string): Promise<string | undefined> {
    const { status, stdout } = await runCommand(['nft', 'get', 'element', ...TABLE, 'service-ips', `{ ${address} . tcp . 80 }`])
    return status === 0 ? stdout : undefined
  }
}
