// SPDX-License-Identifier: Apache-2.0
/** The supervisor's part: agents start, die, come back; a cluster that changes while they run. Root, and a built
 * data plane. */
import { describe, expect, test } from 'vitest'
import { Lab } from '../../../lab/lab.ts'
import { request } from '../../../lab/traffic/traffic.ts'
import { waitFor } from '../../../lab/wait.ts'
import { Manifests, node, pod, TWO_NODES } from '../cluster.ts'
import { machine, traces } from '../machine.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'
import { programCommand } from '../../../testkit/base/program.ts'

/** The sources, whatever was built before. */
const agentCommand = programCommand('agent')

describe('agents', () => {
  test('are started until ready, killed, started again and stopped, and touch nothing but their nodes', async () => {
    using manifests = new Manifests(TWO_NODES)
    const before = machine()
    {
      await using lab = await Lab.up({ name: 'tagents', resources: manifests.dir, agentCommand, servers: false })
      const ready = async (): Promise<unknown[]> => (await lab.status()).nodes.map((one) => one.agent?.ready)
      expect(await ready()).toEqual([true, true])
      expect((await lab.status()).ok).toBe(true)
      expect(lab.log('a')).toContain('agent.started')
      const first = lab.agents.pid('a')

      expect(await lab.agents.stop('a', 'SIGKILL')).toBe(true)
      expect(await ready()).toEqual([undefined, true])
      expect((await lab.status()).ok).toBe(false)
      expect(await lab.agents.stop('a', 'SIGKILL')).toBe(false)

      await lab.agents.start('a')
      await lab.agents.waitReady('a')
      expect(lab.agents.pid('a')).not.toBe(first)
      expect(await lab.agents.start('a')).toBe(lab.agents.pid('a'))

      expect(await lab.agents.stop('b', 'SIGTERM')).toBe(true)
      expect(lab.log('b')).toContain('agent.stopped')
      expect(await lab.mustRun('node/a', ['find', '/sys/fs/bpf/netplane', '-name', 'np_ct'])).toContain('maps/np_ct')
      expect(machine()).toEqual(before)
    }
    expect(traces('tagents')).toEqual([])
    expect(machine()).toEqual(before)
  })

  test('take up pods that come later, and let go of those that leave', async () => {
    using manifests = new Manifests([...TWO_NODES.slice(0, 3), withRange('b', '10.31.1.0/24')])
    await using lab = await Lab.up({ name: 'tlater', resources: manifests.dir, agentCommand })
    manifests.write([
      withRange('a', '10.31.0.0/24'),
      withRange('b', '10.31.1.0/24'),
      pod('default/one', 'a', '10.31.0.1'),
      pod('shop/three', 'b', '10.31.1.3'),
    ])
    await lab.sync()
    const answers = async (): Promise<true | undefined> => {
      const result = await request(lab, { from: 'one', to: { proto: 'tcp', address: '10.31.1.3', port: 8080 }, timeoutMs: 500 })
      return result.answers[0]?.peer.startsWith('10.31.0.1:') === true ? true : undefined
    }
    expect(await waitFor(answers, { timeoutMs: HANG_MS }), lab.log('b')).toBe(true)
    expect((await lab.status()).ok).toBe(true)
  })

  test('are asked where they serve health now, not where they did when the lab was built', async () => {
    using manifests = new Manifests(TWO_NODES)
    await using lab = await Lab.up({ name: 'tport', resources: manifests.dir, agentCommand, servers: false })
    const felix = { apiVersion: 'netplane.io/v3', kind: 'FelixConfiguration', metadata: { name: 'default' }, spec: { healthPort: 19099 } }
    manifests.write([...TWO_NODES, felix])
    expect(await waitFor(async () => ((await lab.status()).ok ? true : undefined), { timeoutMs: HANG_MS })).toBe(true)
    expect((await lab.agents.get({ node: 'a', port: 19099, path: '/readiness', waitMs: 10_000 })).status).toBe(0)
  })

  test('that cannot start are an error with the end of their log, and leave no lab', async () => {
    using manifests = new Manifests([node('a', '172.31.7.2')])
    const failing = ['sh', '-c', 'echo no such luck; exit 3']
    await expect(Lab.up({ name: 'tfail', resources: manifests.dir, agentCommand: failing })).rejects.toThrow(
      /agent of node a: (ended|did not start).*no such luck/s,
    )
    expect(traces('tfail')).toEqual([])
  })
})

function withRange(name: 'a' | 'b', range: string): object {
  const addresses = name === 'a' ? ['172.31.7.2', 'fd00:31:7::2'] : ['172.31.7.3', 'fd00:31:7::3']
  return { ...node(name, ...addresses), spec: { podCIDRs: [range] } }
}
