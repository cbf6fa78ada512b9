// SPDX-License-Identifier: Apache-2.0
/** Three nodes and a client, dual stack, on which tests put manifests and ask questions. Layer: testkit. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { hostPort } from '#lib/base/ip.ts'
import { RequestAgent } from '../../lab/traffic/request-agent.ts'
import { Lab } from '../../lab/lab.ts'
import { waitFor } from '../../lab/wait.ts'
import { endpointText, type Endpoint } from '../../lab/tools/address.ts'
import type { Order, Outcome } from '../../lab/tools/protocol.ts'
import { HANG_MS } from '../base/hang.ts'
import { addressOf, clusterObjects, FAMILIES, NODES, type NodeName } from './manifests.ts'
import { TestService } from './test-service.ts'
import { programCommand } from '../base/program.ts'

type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never

/** Errors of a place that cannot even send, and so of a lab that is broken. */
const UNSENT: readonly string[] = ['ENETUNREACH', 'EADDRNOTAVAIL']

/** How to wait for what is to come. */
export interface SettleOptions extends AskOptions {
  /** for so long at most, instead of the usual patience */
  readonly withinMs?: number
  /** ask once more, many times, before it is believed */
  readonly confirm?: boolean
}

export type Several<T> = T | readonly T[]

export interface AskOptions {
  readonly count?: number
  readonly timeoutMs?: number
  readonly payload?: number
  readonly reply?: number
  readonly localPort?: number
}

/** What comes back, each kind once; 'failures': nothing else, of what could be sent. */
type Wanted = readonly string[] | 'failures'

interface Question {
  readonly from: Several<string>
  readonly to: Several<Endpoint>
  readonly wanted: Wanted
}

export class Cluster {
  readonly #name: string
  readonly #askers = new Map<string, RequestAgent>()
  #lab: Lab | undefined
  #directory = ''
  #services = 0

  /** Nothing is built before `up`. */
  constructor(name: string) {
    this.#name = name
  }

  async up(felix: object = {}): Promise<void> {
    this.#directory = mkdtempSync(join(tmpdir(), 'netplane-e2e-'))
    this.put('cluster', clusterObjects(felix))
    const agentCommand = programCommand('agent')
    this.#lab = await Lab.up({ name: this.#name, resources: this.#directory, agentCommand })
    await this.routeOuter('a')
    // a closed port of a node refuses datagrams by the kernel's ICMP, of which there is one a second for each client
    // otherwise
    const unlimited = [
      'net.ipv4.icmp_ratelimit=0',
      'net.ipv4.icmp_msgs_per_sec=10000',
      'net.ipv4.icmp_msgs_burst=1000',
      'net.ipv6.icmp.ratelimit=0',
    ]
    for (const node of NODES) await this.lab.mustRun(`node/${node}`, ['sysctl', '-q', '-w', ...unlimited])
  }

  /** Load balancers and external addresses are behind this node, for the client: it stands in for what announces
   * them. */
  async routeOuter(node: NodeName): Promise<void> {
    for (const [range, family] of [
      ['203.0.113.0/24', 4],
      ['2001:db8:113::/64', 6],
    ] as const)
      await this.lab.mustRun('client', ['ip', 'route', 'replace', range, 'via', addressOf(`node/${node}`, family)])
  }

  async down(): Promise<void> {
    for (const asker of this.#askers.values()) asker.close()
    await this.#lab?.down()
    if (this.#directory !== '') rmSync(this.#directory, { recursive: true, force: true })
  }

  get lab(): Lab {
    if (this.#lab === undefined) throw new Error(`cluster ${this.#name} is not up`)
    return this.#lab
  }

  /** Replaces a file of manifests, whole. */
  put(file: string, objects: readonly object[]): void {
    const path = join(this.#directory, `${file}.json`)
    writeFileSync(`${path}.new`, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
    renameSync(`${path}.new`, path)
  }

  remove(file: string): void {
    rmSync(join(this.#directory, `${file}.json`))
  }

  /** A service with a name and numbers of its own; there is nothing of it before its first `put`. */
  service(): TestService {
    return new TestService(this, ++this.#services)
  }

  async order(place: string, order: WithoutId<Order>): Promise<readonly Outcome[]> {
    const asker = this.#askers.get(place) ?? new RequestAgent(this.lab, place)
    this.#askers.set(place, asker)
    return await asker.order(order)
  }

  async ask(from: string, to: Endpoint, options: AskOptions = {}): Promise<readonly Outcome[]> {
    return await this.order(from, { do: 'ask', to: endpointText(to), count: 1, timeoutMs: 1000, payload: 64, reply: 0, ...options })
  }

  /** Status and text of a page, or why there is none. */
  async page(from: string, url: string): Promise<Outcome> {
    const [outcome = { failed: 'NOTHING' }] = await this.order(from, { do: 'get', url })
    return outcome
  }

  /** Waits until from everywhere to everywhere these pods answer, each of them, and nothing fails, not even when
   * asked many times; all outcomes then. */
  async reaches(from: Several<string>, to: Several<Endpoint>, pods: readonly string[]): Promise<readonly Outcome[]> {
    return await this.answers({ from, to, pods, confirm: true })
  }

  /** As {@link reaches}, but with the caller's options, and without the confirmation unless they have it. */
  async answers(
    told: { from: Several<string>; to: Several<Endpoint>; pods: readonly string[] } & SettleOptions,
  ): Promise<readonly Outcome[]> {
    const { from, to, pods, ...options } = told
    return await this.#settle({ from, to, wanted: [...pods].sort() }, { count: pods.length === 1 ? 4 : 10 * pods.length, ...options })
  }

  /** Waits until connections are refused, all and at once, and go on to be. */
  async refuses(from: Several<string>, to: Several<Endpoint>): Promise<void> {
    await this.#settle({ from, to, wanted: ['ECONNREFUSED'] }, { count: 4, confirm: true })
  }

  /** Waits until nothing is answered or refused, and goes on not to be. */
  async silent(from: Several<string>, to: Several<Endpoint>): Promise<void> {
    await this.#settle({ from, to, wanted: ['TIMEOUT'] }, { count: 3, timeoutMs: 400, confirm: true })
  }

  /** Waits until every question fails, and goes on to, however, but that it could not be sent. */
  async fails(from: Several<string>, to: Several<Endpoint>): Promise<void> {
    await this.#settle({ from, to, wanted: 'failures' }, { count: 3, timeoutMs: 400, confirm: true })
  }

  /** Waits until one client stays with one pod, first one question, then many at once; the pod. */
  async sticks(from: string, to: Endpoint): Promise<string> {
    const pod = await waitFor(
      async () => {
        const [first] = kinds(await this.ask(from, to))
        const all = kinds(await this.ask(from, to, { count: 16 }))
        return all.length === 1 && all[0] === first ? podOf(first) : undefined
      },
      { timeoutMs: HANG_MS },
    )
    if (pod !== undefined) return pod
    return expect.fail(`from ${from} to ${endpointText(to)}: ${kinds(await this.ask(from, to, { count: 16 })).join()}, not always one pod`)
  }

  /** Waits until the service's health page on the node says so; "ECONNREFUSED": until there is none. */
  async health(node: NodeName, service: TestService, wanted: 200 | 503 | 'ECONNREFUSED'): Promise<void> {
    for (const family of FAMILIES) {
      const url = `http://${hostPort(addressOf(`node/${node}`, family), service.healthCheckNodePort)}/healthz`
      const status = async (): Promise<unknown> => {
        const page = await this.page('client', url)
        return 'status' in page ? page.status : 'failed' in page ? page.failed : page
      }
      await expect.poll(status, { interval: 50, message: url }).toBe(wanted)
    }
  }

  /** Each place asks each endpoint, all at the same time, until what comes back is wanted. */
  async #settle(what: Question, options: SettleOptions): Promise<readonly Outcome[]> {
    const pairs = [what.from].flat().flatMap((from) => [what.to].flat().map((to) => ({ from, to, wanted: what.wanted })))
    // a list that came out empty would be content with anything
    if (pairs.length === 0) throw new Error('there is no pod to ask, or none to be asked')
    return (await Promise.all(pairs.map((pair) => this.#settleOne(pair, options)))).flat()
  }

  async #settleOne(pair: { from: string; to: Endpoint; wanted: Wanted }, options: SettleOptions): Promise<readonly Outcome[]> {
    const { from, to, wanted } = pair
    const { withinMs = HANG_MS, confirm = false, ...asked } = options
    let last: readonly Outcome[] = []
    const right = async (): Promise<true | undefined> => {
      last = await this.ask(from, to, asked)
      if (!isWanted(last, wanted)) return undefined
      if (!confirm) return true
      // a few answers from the right pods may be luck, and so may silence
      last = await this.ask(from, to, { ...asked, count: 30 })
      return isWanted(last, wanted) ? true : undefined
    }
    const found = await waitFor(right, { timeoutMs: withinMs })
    if (found === undefined) expect(kinds(last), `from ${from} to ${endpointText(to)}`).toEqual(wanted)
    return last
  }
}

function isWanted(outcomes: readonly Outcome[], wanted: Wanted): boolean {
  if (typeof wanted !== 'string') return kinds(outcomes).join() === wanted.join()
  return outcomes.length > 0 && outcomes.every((outcome) => 'failed' in outcome && !UNSENT.includes(outcome.failed))
}

/** What came back, each kind once, sorted: pods' names and codes of errors. */
export function kinds(outcomes: readonly Outcome[]): string[] {
  const names = outcomes.map((outcome) => ('pod' in outcome ? outcome.pod : 'failed' in outcome ? outcome.failed : 'other'))
  return [...new Set(names)].sort()
}

/** undefined for the code of an error. */
function podOf(kind: string | undefined): string | undefined {
  return kind !== undefined && /^[a-z]/.test(kind) ? kind : undefined
}

/** The addresses from which the pods were asked, without ports, each once. */
export function peers(outcomes: readonly Outcome[]): string[] {
  const all = outcomes.flatMap((outcome) => ('peer' in outcome ? [outcome.peer.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')] : []))
  return [...new Set(all)].sort()
}
