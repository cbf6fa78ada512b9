// SPDX-License-Identifier: Apache-2.0
/** Writes of a switch in a large cluster: several at once, and none once another process may act. Layer: test. */
import { expect, test } from 'vitest'
import type { ApiClient } from '#lib/api/client.ts'
import { asApiObject } from '#lib/api/resource.ts'
import { silentLog } from '#lib/obs/log.ts'
import { PLATFORM_NETWORK } from '#operator/switch/proxy-found.ts'
import type { SwitchWrite } from '#operator/switch/situation.ts'
import { SwitchWriter } from '#operator/switch/switch-writer.ts'

const HOLD = Array.from({ length: 200 }, (_, at): SwitchWrite => ({ kind: 'override', node: `n${at}`, mode: 'BPF', mark: undefined }))

/** How many are written, and how many of them at once at the most, as long as `mayAct`. */
async function hold(mayAct: (written: number) => boolean): Promise<{ readonly written: number; readonly atOnce: number }> {
  let [running, atOnce, begun] = [0, 0, 0]
  const patch: ApiClient['patch'] = async ({ name }) => {
    begun++
    atOnce = Math.max(atOnce, ++running)
    await new Promise((resolve) => setTimeout(resolve, 1))
    running--
    return asApiObject({ apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', metadata: { name } })
  }
  const refuse = (): Promise<never> => Promise.reject(new Error('not asked for'))
  const client = { patch, get: refuse, list: refuse, create: refuse, update: refuse, delete: refuse, request: refuse }
  const writer = new SwitchWriter({ client, log: silentLog, whyLocked: () => undefined, mayAct: () => mayAct(begun) })
  const { signal } = new AbortController()
  const input = { writes: HOLD, configurations: new Map(), proxy: PLATFORM_NETWORK, keepsProxyRules: false, signal }
  const { written } = await writer.write(input)
  return { written: written.length, atOnce }
}

test('a hold of many nodes is written several at once', async () => {
  expect(await hold(() => true)).toEqual({ written: 200, atOnce: 16 })
})

test('nothing more is written once another process may act', async () => {
  expect(await hold((begun) => begun < 20)).toMatchObject({ written: 20 })
})
