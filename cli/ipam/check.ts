// SPDX-License-Identifier: Apache-2.0
/** `ipam check`: where blocks, pods, nodes and NodeNetworks disagree on addresses. Layer: cli. */
import { writeFileSync } from 'node:fs'
import { ConfigError, errorText } from '#lib/base/errors.ts'
import { packageVersion } from '#lib/base/os/package.ts'
import { connect } from '../cluster/connect.ts'
import { clusterInformation } from '#lib/control/cluster-version.ts'
import { mayRead } from '../cluster/may-read.ts'
import { readSettings } from '../cluster/settings.ts'
import { linesText, type CommandResult } from '../command-result.ts'
import { checkText } from './check-text.ts'
import { readAddresses } from './cluster.ts'
import type { IpamCheckOrder } from './order.ts'
import { findProblems } from './problems.ts'
import { reportText } from './report.ts'

/** Problems are no failure of the command. */
export async function checkCommand(order: IpamCheckOrder): Promise<CommandResult> {
  await using client = connect(readSettings({ flags: order.connection, env: process.env }))
  const warning = await mayRead(client, order.allowMismatch)
  // before the addresses: a lock that is taken later says nothing of them
  const information = await clusterInformation(client)
  const { view } = await readAddresses(client)
  const problems = findProblems(view)
  if (order.output !== undefined)
    writeReport(
      order.output,
      reportText({
        version: `v${packageVersion()}`,
        time: new Date().toISOString(),
        clusterGUID: information?.clusterGUID ?? null,
        datastoreLocked: information?.datastoreReady === false,
        problems,
      }),
    )
  const text = checkText({ view, problems, showAll: order.showAll, showProblems: order.showProblems })
  return { text, warnings: linesText([warning]), exitCode: 0 }
}

function writeReport(path: string, text: string): void {
  try {
    writeFileSync(path, text)
  } catch (thrown) {
    throw new ConfigError('--output', `${path} cannot be written: ${errorText(thrown)}`, thrown)
  }
}
