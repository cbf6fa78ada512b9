// SPDX-License-Identifier: Apache-2.0
/** The real kube-proxy on a node of a lab. Layer: testkit. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Lab } from '../../../lab/lab.ts'
import { waitFor } from '../../../lab/wait.ts'

export type ProxyMode = 'iptables' | 'nftables'

const SYNC_MS = 60_000

export interface KubeProxyOptions {
  readonly lab: Lab
  readonly programs: string
  readonly node: string
  readonly mode: ProxyMode
  readonly kubeconfig: string
  /** of all pods; what comes from elsewhere is masqueraded */
  readonly podCidrs: readonly string[]
  /** its log goes there */
  readonly folder: string
  /** addresses that are in its rules once it has served the objects there are */
  readonly until: readonly string[]
}

/** What it has written so far, of each family. */
export async function proxyRules(lab: Lab, node: string, mode: ProxyMode): Promise<string[]> {
  const table = (family: string): string[] => ['nft', 'list', 'table', family, 'kube-proxy']
  const commands = mode === 'nftables' ? ['ip', 'ip6'].map(table) : [['iptables-save'], ['ip6tables-save']]
  const outcomes = await Promise.all(commands.map((command) => lab.run(`node/${node}`, command)))
  // without a table there is nothing yet
  return outcomes.map(({ stdout }) => stdout)
}

/** It writes one family after the other, each with what masquerades. */
function isComplete(families: readonly string[], until: readonly string[]): boolean {
  const isWritten = (rules: string): boolean => /^-A KUBE-POSTROUTING|chain masquerading/m.test(rules)
  return families.every(isWritten) && until.every((address) => families.some((rules) => rules.includes(address)))
}

/** Resolves when its rules are in place: they stay when it ends, as they do on a real node. Throws with the end of
 * its log. */
export async function startKubeProxy(options: KubeProxyOptions): Promise<ChildProcess> {
  const { lab, node, mode, until } = options
  const path = join(options.folder, `kube-proxy-${node}.log`)
  const log = openSync(path, 'a')
  const child = lab.spawn(`node/${node}`, [join(options.programs, 'kube-proxy'), ...proxyFlags(options)], ['ignore', log, log])
  closeSync(log)
  const ready = await waitFor(
    async () => {
      if (child.exitCode !== null || child.signalCode !== null) return 'ended'
      return isComplete(await proxyRules(lab, node, mode), until) ? 'ready' : undefined
    },
    { timeoutMs: SYNC_MS, everyMs: 100 },
  )
  if (ready === 'ready') return child
  await stopKubeProxy(child)
  throw new Error(`kube-proxy of ${node} ${ready ?? 'has no rules in time'}: ${readFileSync(path, 'utf8').slice(-1500)}`)
}

/** Its rules stay. */
export async function stopKubeProxy(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const closed = once(child, 'close')
  child.kill('SIGTERM')
  await closed
}

export function proxyFlags(options: Pick<KubeProxyOptions, 'kubeconfig' | 'node' | 'mode' | 'podCidrs'>): string[] {
  return [
    `--kubeconfig=${options.kubeconfig}`,
    `--hostname-override=${options.node}`,
    `--proxy-mode=${options.mode}`,
    `--cluster-cidr=${options.podCidrs.join(',')}`,
    // limits of the whole machine, which no namespace may set
    ...['--conntrack-max-per-core=0', '--conntrack-min=0'],
    ...['--conntrack-tcp-timeout-established=0', '--conntrack-tcp-timeout-close-wait=0'],
  ]
}
