// SPDX-License-Identifier: Apache-2.0
/** UDP flows of the node's own sockets stay where they began when a kube-proxy comes. Layer: agent/dataplane.
 *
 * Programs translate such a flow below the kernel's connection tracking, which sees datagrams to the service itself.
 * A kube-proxy clears such entries each time that it starts or a UDP service's endpoints change. Its rules would
 * translate the next datagram, and answers that are on their way would meet no connection of theirs. So a table of
 * ours, asked before those rules, lets datagrams of these flows go where they are sent. */
import { everyMs, type Clock } from '#lib/base/clock.ts'
import { errorCode, errorText } from '#lib/base/errors.ts'
import type { Addr } from '#lib/base/ip.ts'
import type { RunTool } from '#lib/base/os/run-tool.ts'
import type { Log } from '#lib/obs/log.ts'
import { netfilterTools } from '#agent/interfaces/netlink/nf-tables.ts'
import { chunksOf } from '../../maps/chunks.ts'
import type { FlowToService } from '../conntrack/client.ts'
import type { FlowTable } from '../conntrack/gc.ts'
import { keptFlowsEndInput, keptFlowsInput } from './rules.ts'

export interface KeptFlowsOptions {
  readonly clock: Clock
  readonly log: Log
  /** ms of the programs' clock */
  readonly monotonicMs: () => number
  /** undefined while there is none, or another takes its place */
  readonly table: () => FlowTable | undefined
  /** what is wanted is known, and in place */
  readonly serves: () => boolean
  /** a kube-proxy is to run on this node */
  readonly expected: () => boolean
  /** it has written its rules: new flows are its own */
  readonly present: () => boolean | undefined
  /** the kernel takes this address for the node's */
  readonly isOwn: (addr: Addr) => boolean
  readonly run?: RunTool | undefined
}

const TICK_MS = 200
/** Before its rules are there: time spent on other things for each ms of a look. */
const REST = 19
/** Afterwards flows end, and none come. */
const SELDOM_MS = 10_000
const LONG_REST = 99
/** No answer is on its way to a flow that has been idle for longer: it may go to kube-proxy. Its port may be another
 * socket's by then. */
const ACTIVE_MS = 2000
const ROOM = 1024

const runTool = netfilterTools({ timeoutMs: 10_000 })

export class KeptFlows {
  readonly #options: KeptFlowsOptions
  /** what the kernel was told last; undefined: whatever an agent before has told it */
  #written: string | undefined
  #writtenAt = 0
  #lookAt = 0
  /** of the last look: the same is logged once */
  #failure: string | undefined
  /** of a kube-proxy on this node, as of the last look */
  #stage: 'none' | 'comes' | 'there' | undefined

  constructor(options: KeptFlowsOptions) {
    this.#options = options
  }

  /** Until the signal aborts. The table stays then: sockets outlive the agent. */
  async run(signal: AbortSignal): Promise<void> {
    await everyMs(this.#options.clock, { ms: TICK_MS, signal, run: () => this.tick() })
  }

  /** Does what is due. */
  async tick(): Promise<void> {
    const { clock, log, serves, expected, present } = this.#options
    const stage = expected() ? (present() === true ? 'there' : 'comes') : 'none'
    if (stage !== this.#stage) [this.#stage, this.#lookAt] = [stage, 0]
    if (!serves() || clock.now() < this.#lookAt) return
    const began = clock.now()
    try {
      const flows = stage === 'none' ? [] : await this.#look()
      if (flows === undefined) return
      await this.#write(flows)
      this.#failure = undefined
      if (stage === 'comes') this.#lookAt = clock.now() + REST * (clock.now() - began)
      // no other will begin, and none but time ends those
      else this.#lookAt = flows.length === 0 ? Infinity : clock.now() + Math.max(SELDOM_MS, LONG_REST * (clock.now() - began))
    } catch (thrown) {
      // a table that is replaced is closed
      if (errorCode(thrown) === 'EBADF') return
      this.#lookAt = clock.now() + SELDOM_MS
      if (errorText(thrown) !== this.#failure) log.warn({ error: thrown }, 'flows.not-kept')
      this.#failure = errorText(thrown)
    }
  }

  async #look(): Promise<readonly FlowToService[] | undefined> {
    const { table: find, monotonicMs, isOwn } = this.#options
    const table = find()
    if (table === undefined) return undefined
    const { map, reader, clientOf } = table
    const kept: FlowToService[] = []
    for await (const chunk of chunksOf(map, ROOM)) {
      const now = monotonicMs()
      for (let at = 0; at < chunk.count; at++) {
        const { proto, translated, proxied, expiredMs, idleMs } = reader.read(chunk, at, now)
        if (proto !== 'udp' || !translated || proxied || expiredMs > 0 || idleMs > ACTIVE_MS) continue
        const [key, value] = [chunk.keys.subarray(at * map.keyBytes), chunk.values.subarray(at * map.valueBytes)]
        const flow = clientOf(key.subarray(0, map.keyBytes), value.subarray(0, map.valueBytes))
        if (flow !== undefined && isOwn(flow.sent.src)) kept.push(flow)
      }
    }
    return kept
  }

  async #write(flows: readonly FlowToService[]): Promise<void> {
    const { clock, run = runTool, log } = this.#options
    const text = keptFlowsInput(flows)
    const isSame = text === this.#written
    if (isSame && (text === '' || clock.now() - this.#writtenAt < SELDOM_MS)) return
    const listing = text === '' ? await run(['nft', 'list', 'tables']) : ''
    const input = text === '' ? keptFlowsEndInput(listing ?? '') : text
    if (input !== '' && (await run(['nft', '-f', '-'], input)) === undefined) log.warn({ error: 'nft is not installed' }, 'flows.not-kept')
    else if (input !== '' && !isSame) log.info({ flows: flows.length }, 'flows.kept')
    this.#written = text
    this.#writtenAt = clock.now()
  }
}

/** True when there was anything to end, also of an agent before. Throws CommandError. */
export async function endKeptFlows(run: RunTool = runTool): Promise<boolean> {
  const input = keptFlowsEndInput((await run(['nft', 'list', 'tables'])) ?? '')
  if (input !== '') await run(['nft', '-f', '-'], input)
  return input !== ''
}
