// SPDX-License-Identifier: Apache-2.0
/** From a real kube-proxy's rules to ours under traffic: what was open goes on, the rules are gone, new connections
 * are served. Layer: test. */
import { expect, test } from 'vitest'
import { RequestAgent } from '../../lab/traffic/request-agent.ts'
import { Lab } from '../../lab/lab.ts'
import { startFlow, startRequests } from '../../lab/traffic/traffic.ts'
import { endpointText, type Endpoint } from '../../lab/tools/address.ts'
import type { Outcome } from '../../lab/tools/protocol.ts'
import { waitFor } from '../../lab/wait.ts'
import { HANG_MS } from '../../testkit/base/hang.ts'
import { Manifests } from './cluster.ts'
import { OBJECTS, RULES, tcp, waysFrom } from './proxied.ts'
import { programCommand } from '../../testkit/base/program.ts'

const agentCommand = programCommand('agent')
const FAMILIES = ['IPv4', 'IPv6'] as const

/** One connection by the first service that stays, and others from its port to all the backends that it can have. */
class Namesakes implements Disposable {
  readonly #from: string
  readonly #asker: RequestAgent
  readonly #at: { readonly localPort: number; readonly timeoutMs: number }
  readonly #to: Endpoint

  constructor(lab: Lab, from: string, family: (typeof FAMILIES)[number]) {
    this.#from = from
    this.#asker = new RequestAgent(lab, from)
    this.#at = { localPort: 20_000, timeoutMs: 5000 }
    this.#to = family === 'IPv4' ? tcp('10.97.0.11', 80) : tcp('fd00:97::11', 80)
  }

  async open(): Promise<void> {
    expect(await this.#order({ do: 'open', connection: 'first', to: endpointText(this.#to), ...this.#at })).toHaveProperty('pod')
  }

  async check(): Promise<void> {
    const backends = this.#to.address.includes(':') ? ['fd00:245:1::11', 'fd00:245:2::11'] : ['10.245.1.11', '10.245.2.11']
    const ask = { do: 'ask', count: 1, payload: 64, reply: 0, ...this.#at } as const
    const say = { do: 'say', connection: 'first', timeoutMs: 5000 } as const
    expect(await this.#order(say)).toHaveProperty('pod')
    for (const backend of backends)
      expect(await this.#order({ ...ask, to: endpointText(tcp(backend, 8080)) }), `${this.#from} to ${backend}`).toHaveProperty('pod')
    expect(await this.#order(say), `${this.#from} to ${this.#to.address}, then`).toHaveProperty('pod')
  }

  [Symbol.dispose](): void {
    this.#asker.close()
  }

  async #order(order: Parameters<RequestAgent['order']>[0]): Promise<Outcome | undefined> {
    return (await this.#asker.order(order))[0]
  }
}

test.each(Object.entries(RULES))('%s', async (kind, { on, restore, input, list }) => {
  using manifests = new Manifests(OBJECTS)
  // until the agents come the kernel routes, as it does where kube-proxy is at work
  await using lab = await Lab.up({ name: `thand${kind}`, resources: manifests.dir, agentCommand, plain: true })
  const ways = waysFrom(on)
  await lab.mustRun(`node/${on}`, restore.split(' '), { input })
  const rules = async (): Promise<string> => (await lab.run(`node/${on}`, ['sh', '-c', list])).stdout
  expect(await rules()).not.toBe('')

  using stack = new DisposableStack()
  const namesakes = [`shell-${on}`, `node/${on}`].flatMap((from) => FAMILIES.map((family) => stack.use(new Namesakes(lab, from, family))))
  for (const one of namesakes) await one.open()
  const flows = await Promise.all(ways.map((way) => startFlow(lab, { ...way, rate: 50 })))
  await lab.startAgents(true)
  const removed = (): true | undefined => (lab.log(on).includes('"kube-proxy.removed"') ? true : undefined)
  expect(await waitFor(removed, { timeoutMs: HANG_MS }), lab.log(on)).toBe(true)
  expect(lab.log(on)).toMatch(/"takeover.begun".*"dataplane.ready".*"kube-proxy.removed"/s)
  expect(await rules()).toBe('')

  const fresh = ways.flatMap(({ from, to }) => to.slice(0, 2).map((one) => startRequests(lab, { from, to: one, count: 20 })))
  for (const requests of fresh) {
    const result = await requests.result
    expect(result, JSON.stringify(result)).toMatchObject({ ok: 20, refused: 0, reset: 0, timeouts: 0 })
  }
  for (const one of namesakes) await one.check()
  const streams = (await Promise.all(flows.map((flow) => flow.stop()))).flatMap((flow) => flow.streams)
  expect(streams).toHaveLength(26)
  for (const stream of streams) expect(stream, JSON.stringify(stream)).toMatchObject({ lost: 0, reconnects: 0, errors: {} })
  expect(new Set(streams.flatMap((stream) => Object.keys(stream.pods)))).toEqual(new Set(['plain-a', 'plain-b', `balanced-${on}`]))
})
