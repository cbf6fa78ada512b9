// SPDX-License-Identifier: Apache-2.0
/** `ipam release`: takes addresses back that no pod has. Layer: cli. */
import { readFileSync } from 'node:fs'
import type { ApiClient } from '#lib/api/client.ts'
import type { FoundBlock } from '#lib/api/listed.ts'
import { namedOf } from '#lib/api/resource.ts'
import { ConfigError, errorText } from '#lib/base/errors.ts'
import { formatAddr } from '#lib/base/ip.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { release, sameHolder } from '#lib/ipam/block.ts'
import { ipBlockObject, parseIPBlock } from '#lib/kube/objects/ip-block.ts'
import { connect } from '../cluster/connect.ts'
import { clusterInformation } from '#lib/control/cluster-version.ts'
import { readSettings } from '../cluster/settings.ts'
import { guardWrites } from '../cluster/guard.ts'
import { linesText, type CommandResult } from '../command-result.ts'
import { AS_US, reasonOf, whileOthersWrite } from '../resources/objects.ts'
import { readAddresses } from './cluster.ts'
import type { IpamReleaseOrder } from './order.ts'
import { mayUseReports, planAddresses, planLeaked, type ReleasePlan } from './release-plan.ts'
import { leakedInAll, readReport, type ReadReport } from './report.ts'
import type { Held } from './view.ts'

export async function releaseCommand({ chosen, force, allowMismatch, connection }: IpamReleaseOrder): Promise<CommandResult> {
  const reports = chosen.by === 'report' ? chosen.paths.map(reportAt) : []
  await using client = connect(readSettings({ flags: connection, env: process.env }))
  const cluster = await clusterInformation(client)
  // a report is for a datastore that nothing else writes to
  const warning = guardWrites({ cluster, version: packageVersion(), allowMismatch, isAboutLock: chosen.by === 'report' })
  if (chosen.by === 'report') mayUseReports(reports, { cluster, force })
  const { view, blocks } = await readAddresses(client)
  const plan = chosen.by === 'report' ? planLeaked(view, leakedInAll(reports)) : planAddresses(view, chosen.addrs, force)
  const { count, errors } = await releaseAll(client, blocks, plan.release)
  return resultOf({ plan, count, errors, warning })
}

function reportAt(path: string): ReadReport {
  try {
    return readReport(path, readFileSync(path, 'utf8'))
  } catch (thrown) {
    if (thrown instanceof ConfigError) throw thrown
    throw new ConfigError('--from-report', `${path} cannot be read: ${errorText(thrown)}`, thrown)
  }
}

interface Released {
  readonly count: number
  readonly errors: readonly string[]
}

/** Each block by itself, the others go on. */
async function releaseAll(client: ApiClient, blocks: readonly FoundBlock[], all: readonly Held[]): Promise<Released> {
  const errors: string[] = []
  let count = 0
  for (const [block, some] of Map.groupBy(all, (held) => held.block)) {
    const found = blocks.find((one) => one.block === block)
    if (found === undefined) continue
    try {
      await releaseOf(client, found, some)
      count += some.length
    } catch (thrown) {
      errors.push(...some.map(({ addr }) => `${formatAddr(addr)}: ${reasonOf(thrown)}`))
    }
  }
  return { count, errors }
}

/** An agent that writes the block meanwhile wins, and the block is read again. */
async function releaseOf(client: ApiClient, { object }: FoundBlock, all: readonly Held[]): Promise<void> {
  await whileOthersWrite(async () => {
    const live = await client.get(namedOf(object))
    const block = parseIPBlock(live)
    const after = release(block, (holder, addr) => all.some((one) => one.addr === addr && sameHolder(one.holder, holder)), Date.now())
    if (after !== block) await client.update({ ...live, spec: ipBlockObject(after).spec }, AS_US)
  })
}

interface ResultInput extends Released {
  readonly plan: ReleasePlan
  readonly warning: string | undefined
}

function resultOf({ plan: { skipped, refused, release: all }, count, errors, warning }: ResultInput): CommandResult {
  const wrong = [...refused, ...errors]
  const asked = all.length + refused.length
  const text =
    wrong.length === 0
      ? [`Successfully released ${count} address(es)`]
      : count > 0
        ? [`Partial success: released ${count} out of ${asked} addresses`]
        : []
  return {
    text: linesText([...skipped.map((one) => `Skipped: ${one}`), ...text]),
    warnings: linesText([warning, ...wrong]),
    exitCode: wrong.length === 0 ? 0 : 1,
  }
}
