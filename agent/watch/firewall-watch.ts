// SPDX-License-Identifier: Apache-2.0
/** Says when another program's firewall drops what Netplane leaves to the kernel, and when it no longer does.
 * Layer: agent. */
import { everyMs, type Clock } from '#lib/base/clock.ts'
import type { RunTool } from '#lib/base/os/run-tool.ts'
import { deepEqual } from '#lib/base/deep-equal.ts'
import { ConditionReporter } from '#lib/obs/condition-reporter.ts'
import type { Health } from '#lib/obs/health.ts'
import type { Log } from '#lib/obs/log.ts'
import { netfilterTools } from '../interfaces/netlink/nf-tables.ts'
import type { PodDevices } from '../node/firewall/pod-devices.ts'
import { findFirewalls, findingText, type FirewallFinding, type FirewallOptions, type FirewallReport } from '../node/firewall/detect.ts'
import { legacyTables } from '../node/firewall/legacy.ts'

/** Condition: no firewall of others drops what is ours. The agent is ready even while it fails. */
export const FIREWALL = 'node.firewall'

export interface FirewallWatchOptions extends Pick<FirewallOptions, 'forwards'> {
  readonly clock: Clock
  readonly log: Log
  readonly health: Health
  /** everything wanted is in place: before that there are more urgent things */
  readonly serves: () => boolean
  readonly pods: () => readonly PodDevices[]
  readonly run?: RunTool | undefined
}

const TICK_MS = 1000
/** Six short-lived processes, 50 ms of CPU time. */
const LOOK_MS = 60_000
const TOOL_MS = 10_000

export class FirewallWatch {
  readonly #options: FirewallWatchOptions
  readonly #run: RunTool
  #lookAt = 0
  /** of which it was asked last */
  #devices: readonly string[] = []
  readonly #findings: ConditionReporter<FirewallFinding>
  #unread: readonly string[] = []

  constructor(options: FirewallWatchOptions) {
    this.#options = options
    this.#run = options.run ?? netfilterTools({ timeoutMs: TOOL_MS })
    options.health.expect(FIREWALL, 'none')
    this.#findings = new ConditionReporter<FirewallFinding>({
      health: options.health,
      condition: FIREWALL,
      reason: (all) => [...all.keys()].join('; '),
      isSame: () => true,
      found: (_, finding) => options.log.warn({ ...finding }, 'firewall.detected'),
      gone: (finding) => options.log.info({ finding }, 'firewall.cleared'),
    })
  }

  /** The present findings, a line each. */
  get findings(): readonly string[] {
    return [...this.#findings.all.keys()]
  }

  async run(signal: AbortSignal): Promise<void> {
    await everyMs(this.#options.clock, { ms: TICK_MS, signal, run: () => this.tick() })
  }

  /** Looks when that is due, and when pods have other devices. */
  async tick(): Promise<void> {
    const { clock, serves, forwards } = this.#options
    if (!serves()) return
    const pods = this.#options.pods()
    const devices = pods.map(({ name, prefix = name }) => prefix)
    if (clock.now() < this.#lookAt && deepEqual(devices, this.#devices)) return
    this.#note(await findFirewalls({ run: this.#run, legacyTables, pods, forwards }))
    this.#devices = devices
    this.#lookAt = clock.now() + LOOK_MS
  }

  /** Each finding once. */
  #note({ findings, unread }: FirewallReport): void {
    this.#findings.note(new Map(findings.map((finding) => [findingText(finding), finding])))
    if (unread.length > 0 && !deepEqual(unread, this.#unread)) this.#options.log.warn({ reasons: unread }, 'firewall.read-failed')
    this.#unread = unread
  }
}
