// SPDX-License-Identifier: Apache-2.0
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { WINDOW_SECONDS, type FlowUpdate } from '#lib/flows/flow.ts'
import { lcg } from '../../support/lcg.ts'
import { windowOf } from '../made.ts'
import { clientsOf, send } from '../served.ts'
import { startProgram, type Running } from './program.ts'
import { SEED } from '../../support/steady/seed.ts'

const KILLS = Number(process.env['KILLS'] ?? '4')
const KEYS = 40
const WINDOWS = 20

/** What a node tells: of each key of each window first what is open, then the totals. */
function* told(now: number): Generator<FlowUpdate> {
  let sequence = 1
  for (let window = WINDOWS; window > 0; window--) {
    const start = now - (now % WINDOW_SECONDS) - window * WINDOW_SECONDS
    for (const packetsIn of [1, 10])
      for (let key = 0; key < KEYS; key++)
        yield { node: 'a', sequence: sequence++, window: windowOf({ start, key: { destPort: key }, counts: { packetsIn } }) }
  }
}

/** Packets that are known, of how many keys; with `until` those of windows that have ended by then. */
async function known({ grpcPort }: Running, until = 0): Promise<readonly [packets: number, keys: number]> {
  using clients = clientsOf(grpcPort)
  const { flows } = await clients.flows.list({ startTimeLt: BigInt(until) })
  return [flows.reduce((sum, { flow }) => sum + Number(flow?.packetsIn), 0), flows.length]
}

test(
  'killed at any moment it starts again with what was closed, and what nodes tell again counts once',
  async () => {
    const data = mkdtempSync(join(tmpdir(), 'netplane-flows-'))
    onTestFinished(() => {
      rmSync(data, { recursive: true })
    })
    const random = lcg(SEED)
    const now = Math.floor(Date.now() / 1000)
    const updates = [...told(now)]
    const closed = now - 150
    let kept = 0
    for (let kill = 0; kill < KILLS; kill++) {
      const program = await startProgram(data)
      const [there] = await known(program, closed)
      expect(there).toBeGreaterThanOrEqual(kept)
      using clients = clientsOf(program.grpcPort)
      const sending = send(clients, updates.slice(0, random(updates.length) + 1)).catch(() => 0)
      await new Promise((resolve) => setTimeout(resolve, random(2500)))
      kept = (await known(program, closed))[0]
      expect(await program.stop('SIGKILL')).toBe('SIGKILL')
      await sending
    }
    expect(kept).toBeGreaterThan(0)
    const program = await startProgram(data)
    using clients = clientsOf(program.grpcPort)
    expect(await send(clients, updates)).toBe(updates.length)
    await new Promise((resolve) => setTimeout(resolve, 1500))
    const whole = [WINDOWS * KEYS * 10, KEYS]
    expect(await known(program)).toEqual(whole)
    expect(await program.stop('SIGTERM')).toBe(0)
    const last = await startProgram(data)
    expect(await known(last)).toEqual(whole)
    expect(await last.stop('SIGTERM')).toBe(0)
  },
  30_000 + KILLS * 8_000,
)
