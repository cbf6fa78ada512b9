// SPDX-License-Identifier: Apache-2.0
/** The agent's source and store alone, before a server of objects: what they cost until all is in, and for each
 * change after that. Layer: bench. */
import { ApiSource } from '#lib/api/source.ts'
import { Store } from '#lib/store/store.ts'
import { ownFacts, say } from './own-facts.ts'

const [port = '0', events = '0'] = process.argv.slice(2)
const stop = new AbortController()
const store = new Store({
  sources: ['api'],
  onChange: () => {
    store.takeChanges()
    say({ ...ownFacts(), objects: objectsIn() })
    if (Number(events) === 0) stop.abort()
  },
})
const objectsIn = (): number => [...source.facts().values()].reduce((sum, { objects }) => sum + objects, 0)
const nothing = (): Promise<Record<string, string>> => Promise.resolve({})
const server = { protocol: 'http:', host: '127.0.0.1', port: Number(port), prefix: '', tls: nothing, headers: nothing } as const
const source = new ApiSource({ server, node: 'node-0' })
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
