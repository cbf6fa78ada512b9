// SPDX-License-Identifier: Apache-2.0
/** What an older version has left in the kernel of this node goes once our programs are in force: until then it keeps
 * pods connected, and under policy. Layer: agent/dataplane. */
import type { NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import { netfilterTools } from '#agent/interfaces/netlink/nf-tables.ts'
import { encodeSingleAddr, RTM_NEWADDR } from '#agent/interfaces/netlink/addr.ts'
import { NLM_F_CREATE, NLM_F_REPLACE } from '#agent/interfaces/netlink/message.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import { everyMs, type Clock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import { formatAddr, type Addr } from '#lib/base/ip.ts'
import type { RunTool } from '#lib/base/os/run-tool.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import { removeDevice } from '../host/tunnel-device.ts'
import { takeoverInput } from '../kube-proxy/rules.ts'
import { findTables, removeTables, tableTexts, type ToolRules } from '../netfilter/iptables.ts'
import { tableRemovalInput } from '../netfilter/rule-tables.ts'
import { OLD_DEVICE, OLD_TABLE, oldFamilies, oldTables } from './old.ts'

export interface LeftoversOptions {
  readonly clock: Clock
  readonly log: Log
  readonly health: Health
  /** true when everything that is wanted is in place */
  readonly serves: () => boolean
  readonly interfaces: Pick<Interfaces, 'all' | 'byName'>
  readonly netlink: NetlinkExchange
  /** what had the tunnel's port is gone */
  readonly onDeviceGone: () => void
  readonly run?: RunTool | undefined
}

/** Condition: nothing of an older version decides about packets. */
export const LEFTOVERS = 'leftovers.removed'

const SCOPE_LINK = 253
const TICK_MS = 1000
/** In this time an older agent that still runs has written its rules again. */
const AGAIN_MS = 60_000
const LOOK_MS = 3_600_000
const runTool = netfilterTools({ timeoutMs: 60_000 })

export class Leftovers {
  readonly #options: LeftoversOptions
  #lookAt = 0
  /** something went when last looked */
  #wasThere = false

  constructor(options: LeftoversOptions) {
    this.#options = options
  }

  /** Until the signal aborts; what has begun is finished. */
  async run(signal: AbortSignal): Promise<void> {
    await everyMs(this.#options.clock, { ms: TICK_MS, signal, run: () => this.tick() })
  }

  /** Does what is due. */
  async tick(): Promise<void> {
    const { clock, log, health, serves } = this.#options
    if (!serves() || clock.now() < this.#lookAt) return
    this.#lookAt = clock.now() + AGAIN_MS
    try {
      const removed = [...(await this.#removeRules()), ...this.#removeDevice()]
      if (removed.length > 0) this.#say(removed)
      else {
        this.#lookAt = clock.now() + LOOK_MS
        this.#wasThere = false
        health.pass(LEFTOVERS)
      }
    } catch (thrown) {
      log.warn({ error: thrown }, 'leftovers.failed')
      health.fail(LEFTOVERS, errorText(thrown))
    }
  }

  #say(removed: readonly string[]): void {
    const { log, health, clock } = this.#options
    if (this.#wasThere) {
      health.fail(LEFTOVERS, `${removed.join('; ')}: there again after it was removed. An older agent runs on this node: stop it`)
      log.warn({ removed }, 'leftovers.restored')
      this.#lookAt = clock.now() + LOOK_MS
      return
    }
    this.#wasThere = true
    log.info({ removed }, 'leftovers.removed')
    health.pass(LEFTOVERS)
  }

  /** Tables of iptables one after the other, each at once. What they have translated stays so. */
  async #removeRules(): Promise<readonly string[]> {
    const { run = runTool } = this.#options
    const { tools, families } = await readRules(run)
    if (tools.length + families.length > 0) await run(['nft', '-f', '-'], takeoverInput())
    for (const rules of tools) await removeTables(run, rules)
    if (families.length > 0) await run(['nft', '-f', '-'], tableRemovalInput(OLD_TABLE, families))
    return rulesTexts({ tools, families })
  }

  /** Routes by it go with it; ours are there by then. Connections of the node's processes have its address: that stays
   * the node's, until the machine starts anew. */
  #removeDevice(): readonly string[] {
    const { interfaces, netlink, onDeviceGone } = this.#options
    const device = interfaces.byName(OLD_DEVICE)
    if (device?.kind !== 'vxlan') return []
    const loopback = interfaces.all().find((one) => one.loopback)
    for (const { addr, scope } of device.addresses)
      if (loopback !== undefined && scope !== SCOPE_LINK) addAddress(netlink, loopback.index, addr)
    if (!removeDevice(netlink, OLD_DEVICE)) return []
    onDeviceGone()
    return [`device ${OLD_DEVICE}`]
  }
}

function addAddress(netlink: NetlinkExchange, index: number, addr: Addr): void {
  const flags = NLM_F_CREATE | NLM_F_REPLACE
  netlink.request({ what: `add ${formatAddr(addr)}`, type: RTM_NEWADDR, flags, payload: encodeSingleAddr({ index, addr }) })
}

interface OldRules {
  readonly tools: readonly ToolRules[]
  /** of nftables, with a table of theirs */
  readonly families: readonly string[]
}

/** For a log, "iptables-nft: nat 3 chains, 1 jumps" each; empty: no older version has left any. Throws CommandError. */
export async function findOldRules(run: RunTool = runTool): Promise<readonly string[]> {
  return rulesTexts(await readRules(run))
}

async function readRules(run: RunTool): Promise<OldRules> {
  return { tools: await findTables(run, oldTables), families: oldFamilies((await run(['nft', 'list', 'tables'])) ?? '') }
}

function rulesTexts({ tools, families }: OldRules): readonly string[] {
  const tables = tools.map(({ tool, tables: of }) => `${tool}: ${tableTexts(of).join('; ')}`)
  return [...tables, ...families.map((family) => `nft: table ${family} ${OLD_TABLE}`)]
}
