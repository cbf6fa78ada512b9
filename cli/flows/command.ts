// SPDX-License-Identifier: Apache-2.0
/** `flows`: those that the node's agent tells. Layer: cli. */
import { growingTable } from '#lib/base/table.ts'
import { flowKeyText, type FlowUpdate } from '#lib/flows/flow.ts'
import { AgentFlows } from './agent-flows.ts'
import type { FlowsOrder, Output } from './order.ts'
import { cells, compactText, HEADING } from './text.ts'

/** What an agent knows already has come by then: it looks at the flow table when the first reader comes. */
const KNOWN_MS = 2500

/** An agent that has ended is asked for again. */
const AGAIN_MS = 1000

/** Whole lines, as they come. Rejects when no agent answers at first; one that ends later may come back. */
export async function* flowsTexts(order: FlowsOrder): AsyncGenerator<string> {
  const print = printerOf(order.output)
  const isWanted = (update: FlowUpdate): boolean => isInTime(update, order) && order.filter(update)
  let source = await AgentFlows.open(order.socket)
  try {
    const known = await source.within(KNOWN_MS)
    let since = nextOf(known, 0)
    yield print(taken(latest(known).filter(isWanted), order.take))
    while (order.follow) {
      const updates = await source.next()
      since = nextOf(updates ?? [], since)
      const wanted = (updates ?? []).filter(isWanted)
      if (wanted.length > 0) yield print(wanted)
      if (updates === undefined) source = await reopened(order.socket, since)
    }
  } finally {
    source[Symbol.dispose]()
  }
}

/** The number behind the last of these. */
function nextOf(updates: readonly FlowUpdate[], since: number): number {
  return updates.reduce((next, { sequence }) => Math.max(next, sequence + 1), since)
}

async function reopened(socket: string, since: number): Promise<AgentFlows> {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
    const source = await AgentFlows.open(socket, since).catch(() => undefined)
    if (source !== undefined) return source
  }
}

function isInTime({ window }: FlowUpdate, { since = -Infinity, until = Infinity }: FlowsOrder): boolean {
  return window.start * 1000 >= since && window.start * 1000 < until
}

/** Of several of one key and window the last, which has all of it. */
function latest(updates: readonly FlowUpdate[]): readonly FlowUpdate[] {
  const byWindow = new Map<string, FlowUpdate>()
  for (const update of updates) byWindow.set(`${update.window.start} ${flowKeyText(update.window.key)}`, update)
  return [...byWindow.values()].sort((a, b) => a.window.start - b.window.start || a.sequence - b.sequence)
}

function taken(updates: readonly FlowUpdate[], take: FlowsOrder['take']): readonly FlowUpdate[] {
  if (take === undefined) return updates
  return take.from === 'first' ? updates.slice(0, take.count) : updates.slice(-take.count)
}

/** Of one part after the other. */
function printerOf(output: Output): (updates: readonly FlowUpdate[]) => string {
  if (output === 'json') return lines((update) => JSON.stringify(update))
  if (output === 'compact') return lines(compactText)
  const table = growingTable()
  let heading = [HEADING]
  return (updates) => {
    const text = `${table([...heading, ...updates.map((update) => [...cells(update)])])}\n`
    heading = []
    return text
  }
}

function lines(textOf: (update: FlowUpdate) => string): (updates: readonly FlowUpdate[]) => string {
  return (updates) => updates.map((update) => `${textOf(update)}\n`).join('')
}
