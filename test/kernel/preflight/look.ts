// SPDX-License-Identifier: Apache-2.0
/** Runs the agent's preflight on a scratch node, and reads what it leaves for the operator. Layer: test. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { levelOf } from '#lib/preflight/findings.ts'
import { readReport, type NodeReport } from '#lib/preflight/report.ts'
import type { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { programCommand } from '../../../testkit/base/program.ts'

export interface Looked extends NodeReport {
  readonly exit: number
  /** what it told people */
  readonly prose: string
}

/** As other processes of the node: where an agent of it has its programs. */
const IN_CGROUP = 'echo $$ > "$0/cgroup.procs" && exec "$@"'

/** Rejects when it could not look. */
export async function look(node: ScratchNode, ...flags: readonly string[]): Promise<Looked> {
  const log = join(node.folder, 'termination-log')
  const command = [...programCommand('agent'), 'preflight', '--termination-log', log, ...flags]
  const child = node.spawn(['sh', '-c', IN_CGROUP, node.cgroup, ...command])
  let [prose, errors] = ['', '']
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (prose += text))
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text))
  await once(child, 'close')
  if (errors !== '') throw new Error(errors)
  return { ...readReport(readFileSync(log, 'utf8')), exit: child.exitCode ?? -1, prose }
}

/** "mtu-small eth0 1200 1330" */
export function codes({ findings }: NodeReport): string[] {
  return findings.map(({ code, args }) => [code, ...args].join(' '))
}

export function blocking({ findings }: NodeReport): string[] {
  return findings.flatMap(({ code }) => (levelOf(code) === 'blocking' ? [code] : []))
}
