#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/** `make demo`: a cluster on this machine, its story with evidence, nothing left behind. Layer: demo.
 *
 * --keep builds on the lab "demo" and leaves it up: `netplane-lab … --name demo`. Exit code 0 when everything held. */
import { parseArgs } from 'node:util'
import { errorText } from '#lib/base/errors.ts'
import { logTail } from '../lab/processes/daemon.ts'
import { knownLabs } from '../lab/network/down.ts'
import { Lab } from '../lab/lab.ts'
import { agentLog } from '../lab/paths.ts'
import { leftoverText } from '../lab/print.ts'
import { commandLine } from '../lab/processes/process.ts'
import { Report } from './report.ts'
import { NODES, Stage } from './stage.ts'
import { story, type Chapter } from './story.ts'

const { values } = parseArgs({ options: { keep: { type: 'boolean', default: false } } })
const report = new Report({
  write: (text) => process.stdout.write(text),
  color: process.stdout.isTTY && (process.env['NO_COLOR'] ?? '') === '',
})
/** One of our own, so that two demos do not meet; one to be kept has the name that people will type. */
const name = values.keep ? 'demo' : `demo${process.pid}`
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    stop.abort(new Error(`stopped by ${signal}`))
  })
}
/** Rejects when we are asked to stop; what runs then ends with the lab. */
const stopped = new Promise<never>((_, reject) => {
  stop.signal.addEventListener('abort', () => {
    reject(errorOf(stop.signal.reason))
  })
})
stopped.catch(() => undefined)

async function tell(stage: Stage, chapter: Chapter): Promise<void> {
  report.chapter(chapter.title)
  try {
    for await (const piece of chapter.tell(stage)) {
      if (stop.signal.aborted) return
      report.piece(piece)
    }
  } catch (thrown) {
    if (!stop.signal.aborted) report.failure(errorText(thrown))
  }
}

async function run(): Promise<void> {
  for (const earlier of abandoned()) {
    report.progress(`taking down ${earlier}: its demo was killed`)
    await Lab.remove(earlier)
  }
  const stage = await Stage.build(name, (text) => {
    report.progress(text)
  })
  for (const chapter of story) {
    if (stop.signal.aborted) return
    await tell(stage, chapter)
  }
  if (report.failed > 0)
    for (const node of NODES)
      report.piece({ kind: 'evidence', title: `end of ${node}'s agent log`, lines: logTail(agentLog(stage.lab.name, node), 5).split('\n') })
}

async function main(): Promise<void> {
  if (process.getuid?.() !== 0) {
    report.failure('needs root: network namespaces and eBPF programs')
    return
  }
  const running = run()
  try {
    await Promise.race([running, stopped])
  } catch (thrown) {
    report.failure(errorText(thrown))
  } finally {
    if (!values.keep) await leave(running)
  }
}

/** Labs of demos that did not live to take them down. */
function abandoned(): string[] {
  return knownLabs().filter((lab) => {
    const pid = /^demo(\d+)$/.exec(lab)?.[1]
    return pid !== undefined && !(commandLine(Number(pid))?.includes('demo/main') ?? false)
  })
}

async function leave(running: Promise<void>): Promise<void> {
  report.chapter('Nothing is left on this machine')
  await Lab.remove(name)
  // what was under way when we were stopped has lost its lab, and ends; it may have made a directory for its next step
  await running.catch(() => undefined)
  const leftovers = await Lab.remove(name)
  const seen = leftovers.length === 0 ? 'no namespace, process, cgroup or file of the lab' : leftovers.map(leftoverText).join('; ')
  report.piece({ kind: 'table', head: ['WHAT', 'SEEN'], rows: [{ cells: ['lab taken down', seen], ok: leftovers.length === 0 }] })
}

function errorOf(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason))
}

await main()
report.end()
process.exit(report.failed === 0 ? 0 : 1)
