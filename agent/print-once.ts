// SPDX-License-Identifier: Apache-2.0
/** netplane-agent --print-desired. Layer: agent. */
import { systemClock } from '#lib/base/clock.ts'
import { rejectedText } from '#lib/base/result.ts'
import { DirectorySource } from '#lib/manifests/source.ts'
import type { SourceStatus } from '#lib/store/source.ts'
import { Store } from '#lib/store/store.ts'
import type { AgentOptions } from './options.ts'
import { printDesired } from './print.ts'
import { Wanted } from './wanted.ts'

/** Reads the source once; what it refuses goes to standard error. Returns the exit code. */
export async function printOnce(options: Pick<AgentOptions, 'node' | 'resources'>): Promise<number> {
  const stop = new AbortController()
  const source = new DirectorySource({ directory: options.resources, clock: systemClock })
  let status: SourceStatus | undefined
  const store = new Store({
    sources: [source.name],
    onStatus: (_, now) => {
      status = now
      if (now.unavailable !== undefined) stop.abort()
    },
  })
  const sink = store.sink(source.name)
  const synced = (): void => {
    sink.synced()
    stop.abort()
  }
  await source.run({ ...sink, synced }, stop.signal)
  for (const { place, rejected } of status?.problems ?? [])
    process.stderr.write(`${place === undefined ? '' : `${place}: `}${rejectedText(rejected)}\n`)
  let missing: string | undefined
  const onNode = (why: string | undefined): void => {
    missing = why
  }
  const desired = new Wanted({ node: options.node, store, onConfig: () => undefined, onNode }).take(true)
  if (desired === undefined) {
    const why = status?.unavailable?.reason ?? missing ?? `${options.resources} could not be read`
    process.stderr.write(`netplane-agent: ${why}\n`)
    return 1
  }
  process.stdout.write(printDesired(desired))
  return 0
}
