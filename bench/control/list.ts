// SPDX-License-Identifier: Apache-2.0
/** What lists of a large cluster cost the agent's source and store: processes of `api-client`, one after the other, before `api-server`.
 * To be run in a network namespace of its own; writes its figures to standard output as JSON. Layer: bench. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { InternalError } from '#lib/base/errors.ts'
import { mustRun } from '../../lab/command.ts'
import { partCommand } from '../base/root.ts'
import { isObjectWith } from '../base/shape.ts'
import { median } from '../base/statistics.ts'
import type { ListFigure } from './figure.ts'

interface Facts {
  readonly cpu: number
  readonly peak: number
}

async function measure(services: number, times: number): Promise<ListFigure> {
  const start = median((await runsOf(0, times)).map(({ cpu }) => cpu))
  const runs = await runsOf(services, times)
  return { services, cpuSeconds: runs.map(({ cpu }) => cpu - start), peakMb: runs.map(({ peak }) => peak) }
}

async function runsOf(services: number, times: number): Promise<readonly Facts[]> {
  const [program = '', ...args] = partCommand('control/api-server')
  const server = spawn(program, [...args, String(services)], { stdio: ['pipe', 'pipe', 'inherit'] })
  try {
    const { port } = await firstLine<{ readonly port: number }>(server.stdout, ['port'])
    const runs: Facts[] = []
    for (let run = 0; run < times; run++) runs.push(await readAll(port))
    return runs
  } finally {
    server.kill()
  }
}

async function readAll(port: number): Promise<Facts> {
  const facts: unknown = JSON.parse(await mustRun([...partCommand('control/api-client'), String(port)]))
  if (!isObjectWith<Facts>(facts, ['cpu', 'peak'])) throw new InternalError(`no figures: ${JSON.stringify(facts)}`)
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
