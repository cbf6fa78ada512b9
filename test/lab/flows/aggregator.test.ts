// SPDX-License-Identifier: Apache-2.0
/** Flows of a node, kept by an aggregator and asked of it. Root. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Lab } from '../../../lab/lab.ts'
import { request } from '../../../lab/traffic/traffic.ts'
import { waitFor } from '../../../lab/wait.ts'
import { Manifests, node, pod } from '../cluster.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'
import { programCommand } from '../../../testkit/base/program.ts'

const SERVER = ['--flows-server', 'http://127.0.0.1:7443']
const NODE = { ...node('a', '172.31.7.2'), spec: { podCIDRs: ['10.31.0.0/24'] } }
const PODS = [pod('shop/web', 'a', '10.31.0.1'), pod('shop/db', 'a', '10.31.0.2')]
/** goals.md: 2 s */
const SOON_MS = 2000

interface Asked {
  readonly items: readonly Readonly<Record<string, unknown>>[] | null
}

test('a connection is in the answers of the aggregator within two seconds, from both ends, and its bytes after the window', async () => {
  using manifests = new Manifests([NODE, ...PODS])
  const data = mkdtempSync(join(tmpdir(), 'netplane-flows-lab-'))
  await using lab = await Lab.up({ name: 'tflows', resources: manifests.dir, agentCommand: [...programCommand('agent'), ...SERVER] })
  const aggregator = lab.spawn('node/a', [...programCommand('flows'), '--data', data, '--health-port', '0'])
  const ask = async (): Promise<Asked> => {
    const { stdout } = await lab.run('node/a', [
      'curl',
      '-s',
      '-g',
      'http://127.0.0.1:3002/flows?startTimeGte=-120&filters={"dest_names":[{"value":"db"}]}',
    ])
    return (stdout === '' ? { items: null } : JSON.parse(stdout)) as Asked
  }
  try {
    // the agent has found it: a first connection is there
    const isHeard = async (): Promise<true | undefined> => {
      await request(lab, { from: 'shop/web', to: { proto: 'tcp', address: '10.31.0.2', port: 8080 } })
      return ((await ask()).items ?? []).length > 0 ? true : undefined
    }
    expect(await waitFor(isHeard, { timeoutMs: 30_000, everyMs: 500 }), lab.log('a')).toBe(true)
    await request(lab, { from: 'shop/web', to: { proto: 'udp', address: '10.31.0.2', port: 8080 } })
    const isTold = async (): Promise<true | undefined> => {
      const reporters = ((await ask()).items ?? []).filter(({ protocol }) => protocol === 'udp').map(({ reporter }) => reporter)
      return reporters.length === 2 && new Set(reporters).size === 2 ? true : undefined
    }
    expect(await waitFor(isTold, { timeoutMs: SOON_MS, everyMs: 50 })).toBe(true)
    const flow = { source_name: 'web', source_namespace: 'shop', dest_port: 8080, action: 'Allow' }
    expect((await ask()).items).toContainEqual(expect.objectContaining({ ...flow, protocol: 'udp', reporter: 'Dst' }))
    const hasBytes = async (): Promise<true | undefined> =>
      ((await ask()).items ?? []).every(({ bytes_in, bytes_out }) => Number(bytes_in) > 0 && Number(bytes_out) > 0) ? true : undefined
    expect(await waitFor(hasBytes, { timeoutMs: HANG_MS, everyMs: 200 })).toBe(true)
  } finally {
    aggregator.kill('SIGTERM')
    await new Promise((resolve) => aggregator.once('exit', resolve))
    rmSync(data, { recursive: true, force: true })
  }
})
