// SPDX-License-Identifier: Apache-2.0
/** `ipam show`: how many addresses are given away, and who has them. Layer: cli. */
import { rejectedText } from '#lib/base/result.ts'
import { connect } from '../cluster/connect.ts'
import { mayRead } from '../cluster/may-read.ts'
import { readSettings } from '../cluster/settings.ts'
import { linesText, type CommandResult } from '../command-result.ts'
import { readAddresses } from './cluster.ts'
import type { IpamShowOrder } from './order.ts'
import { addressText, borrowedText, configurationText, usageText } from './usage.ts'
import type { AddressView } from './view.ts'

export async function showCommand({ what, connection, allowMismatch }: IpamShowOrder): Promise<CommandResult> {
  if (what === 'configuration') return { text: configurationText(), warnings: '', exitCode: 0 }
  await using client = connect(readSettings({ flags: connection, env: process.env }))
  const warning = await mayRead(client, allowMismatch)
  const { view } = await readAddresses(client)
  const unreadable = view.unreadable.map(rejectedText)
  // what cannot be read is in no number
  const exitCode = unreadable.length === 0 ? 0 : 1
  return { text: textOf(view, what), warnings: linesText([warning, ...unreadable]), exitCode }
}

function textOf(view: AddressView, what: Exclude<IpamShowOrder['what'], 'configuration'>): string {
  switch (what) {
    case 'pools':
    case 'blocks':
      return usageText(view, what === 'blocks')
    case 'borrowed':
      return borrowedText(view)
    default:
      return addressText(view, what.addr)
  }
}
