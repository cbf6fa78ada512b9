// SPDX-License-Identifier: Apache-2.0
/** What lists of a large cluster cost the agent's source and store, and informers of client-node: processes of each
 * in turns before `api-server`. To be run in a network namespace of its own; writes its figures to standard output
 * as JSON. Layer: bench. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { InternalError } from '#lib/base/errors.ts'
import { mustRun } from '../../lab/processes/command.ts'
import { partCommand } from '../base/root.ts'
import { isObjectWith } from '../base/shape.ts'
import { median } from '../base/statistics.ts'
import type { ListFigure, ReaderFigure } from './result.ts'
import type { OwnFacts } from './own-facts.ts'

const READERS = ['control/api-client', 'control/client-node'] as const

type Runs = Readonly<Record<(typeof READERS)[number], readonly OwnFacts[]>>

async function measure(services: number, times: number): Promise<ListFigure> {
  const starts = await runsOf(0, times)
  const runs = await runsOf(services, times)
  const figure = (reader: (typeof READERS)[number]): ReaderFigure => {
    const start = median(starts[reader].map(({ cpu }) => cpu))
    return { cpuSeconds: runs[reader].map(({ cpu }) => cpu - start), peakMb: runs[reader].map(({ peak }) => peak) }
  }
  return { services, ...figure('control/api-client'), clientNode: figure('control/client-node') }
}

async function runsOf(services: number, times: number): Promise<Runs> {
  const [program = '', ...args] = partCommand('control/api-server')
  const server = spawn(program, [...args, String(services)], { stdio: ['pipe', 'pipe', 'inherit'] })
  try {
    const { port } = await firstLine<{ readonly port: number }>(server.stdout, ['port'])
    const runs = { 'control/api-client': [] as OwnFacts[], 'control/client-node': [] as OwnFacts[] }
    for (let run = 0; run < times; run++) for (const reader of READERS) runs[reader].push(await readAll(reader, { port, services }))
    return runs
  } finally {
    server.kill()
  }
}

async function readAll(reader: string, of: { readonly port: number; readonly services: number }): Promise<OwnFacts> {
  const facts: unknown = JSON.parse(await mustRun([...partCommand(reader), String(of.port)]))
  if (!isObjectWith<OwnFacts & { readonly objects: number }>(facts, ['cpu', 'peak', 'objects']))
    throw new InternalError(`no figures: ${JSON.stringify(facts)}`)
  // a slice each
  if (facts.objects !== 2 * of.services) throw new InternalError(`${reader} has ${facts.objects} objects of ${2 * of.services}`)
  return facts
}

async function firstLine<T extends object>(from: NodeJS.ReadableStream, fields: readonly (keyof T & string)[]): Promise<T> {
  for await (const line of createInterface(from)) {
    const value: unknown = JSON.parse(line)
    if (isObjectWith<T>(value, fields)) return value
    break
  }
  throw new InternalError('the server of objects has ended')
}

async function main(argv: readonly string[]): Promise<void> {
  const [services = '10000', times = '5'] = argv
  await mustRun(['ip', 'link', 'set', 'lo', 'up'])
  process.stdout.write(`${JSON.stringify([await measure(Number(services), Number(times))])}\n`)
}

await main(process.argv.slice(2))
