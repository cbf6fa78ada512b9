// SPDX-License-Identifier: Apache-2.0
/** The agent's source and store alone, before a server of objects: what they cost until all is in, and for each change after that. Layer: bench. */
import { readFileSync } from 'node:fs'
import { ApiSource } from '#lib/api/source.ts'
import { Store } from '#lib/store/store.ts'

/** Of the whole process, its start included. */
function facts(): object {
  const status = readFileSync('/proc/self/status', 'utf8')
  const peak = (Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024) / 1e6
  const { user, system } = process.cpuUsage()
  return { cpu: (user + system) / 1e6, peak }
}

function say(what: object): void {
  process.stdout.write(`${JSON.stringify(what)}\n`)
}

const [port = '0', events = '0'] = process.argv.slice(2)
const stop = new AbortController()
const store = new Store({
  sources: ['api'],
  onChange: () => {
    store.takeChanges()
    say(facts())
    if (Number(events) === 0) stop.abort()
  },
})
const nothing = (): Promise<Record<string, string>> => Promise.resolve({})
const server = { protocol: 'http:', host: '127.0.0.1', port: Number(port), prefix: '', tls: nothing, headers: nothing } as const
const source = new ApiSource({ server })
const sink = store.sink('api')
let begun: { readonly cpu: number } | undefined
await source.run(
  {
    ...sink,
    apply: (changes) => {
      sink.apply(changes)
      const seen = source.facts().get('EndpointSlice')?.events ?? 0
      const { user, system } = process.cpuUsage()
      if (seen > 0) begun ??= { cpu: user + system }
      if (seen > 0 && seen >= Number(events)) {
        say({ perEventUs: (user + system - (begun?.cpu ?? 0)) / seen })
        stop.abort()
      }
    },
  },
  stop.signal,
)
