// SPDX-License-Identifier: Apache-2.0
/** A cluster's load balancers: an address for each service, routed to the nodes that take its traffic: `balancer.ts
 * --kubeconfig FILE --node ADDRESS …`. Layer: testkit. */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { command } from '../../base/command.ts'
import { listAt } from '../../../lab/raw.ts'
import { Api } from '../api.ts'
import { balancedOf, patchesOf, type BalancedService } from '../balancing.ts'

const EVERY_MS = 500
/** Addresses for documentation (RFC 5737). */
const addressAt = (index: number): string => `192.0.2.${index}`

class Balancer {
  readonly #api: Api
  readonly #nodes: readonly string[]
  readonly #addresses = new Map<string, string>()
  readonly #routes = new Map<string, string>()
  #next = 1

  constructor(api: Api, nodes: readonly string[]) {
    this.#api = api
    this.#nodes = nodes
  }

  /** One round over all services. */
  async round(): Promise<void> {
    const services = balancedOf(listAt(await this.#api.get('/api/v1/services'), 'items'))
    for (const service of services) {
      const address = service.wanted ? this.#addressOf(service.key) : undefined
      if (address === undefined) await this.#release(service.key)
      else await this.#route(address, await this.#hops(service))
      for (const { path, patch } of patchesOf(service, address)) await this.#api.merge(path, patch)
    }
    const kept = new Set(services.filter(({ wanted }) => wanted).map(({ key }) => key))
    for (const key of [...this.#addresses.keys()]) if (!kept.has(key)) await this.#release(key)
  }

  /** Each its own, and none twice while the balancer runs: no service gets an address that another one had. */
  #addressOf(key: string): string {
    const address = this.#addresses.get(key) ?? addressAt(this.#next++)
    this.#addresses.set(key, address)
    return address
  }

  async #hops(service: BalancedService): Promise<readonly string[]> {
    const well = await Promise.all(this.#nodes.map((node) => isWell(`http://${node}:${service.healthPort}/healthz`)))
    const nodes = this.#nodes.filter((_, index) => well[index])
    return service.sticky ? nodes.slice(0, 1) : nodes
  }

  async #route(address: string, hops: readonly string[]): Promise<void> {
    const route = hops.length === 0 ? ['blackhole', address] : [address, ...hops.flatMap((hop) => ['nexthop', 'via', hop])]
    if (this.#routes.get(address) === route.join(' ')) return
    await command('ip', ['route', 'replace', ...route])
    this.#routes.set(address, route.join(' '))
  }

  async #release(key: string): Promise<void> {
    const address = this.#addresses.get(key)
    this.#addresses.delete(key)
    if (address !== undefined) await this.#forget(address)
  }

  async #forget(address: string): Promise<void> {
    if (this.#routes.delete(address)) await command('ip', ['route', 'flush', 'exact', address])
  }
}

async function isWell(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(1000) })).ok
  } catch {
    return false
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { kubeconfig: { type: 'string' }, node: { type: 'string', multiple: true } } })
  const balancer = new Balancer(new Api(values.kubeconfig ?? ''), values.node ?? [])
  for (;;) {
    // what failed is tried again: the server may be away
    await balancer.round().catch((thrown: unknown) => {
      console.error(thrown)
    })
    await sleep(EVERY_MS)
  }
}

await main()
