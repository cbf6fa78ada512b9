// SPDX-License-Identifier: Apache-2.0
/** Policies of host endpoints against real connections: the node's own ports, those that are never cut, and pods
 * behind it. Layer: test. */
import { expect, test } from 'vitest'
import { Lab } from '../../lab/lab.ts'
import { answered, isSilent, until } from './asking.ts'
import { Manifests, node, pod } from './cluster.ts'
import { programCommand } from '../../testkit/base/program.ts'

const agentCommand = programCommand('agent')
const CLUSTER = [
  { ...node('a', '172.31.43.2', 'fd00:31:43::2'), spec: { podCIDRs: ['10.43.0.0/24', 'fd00:43::/64'] } },
  { ...node('b', '172.31.43.3', 'fd00:31:43::3'), spec: { podCIDRs: ['10.43.1.0/24', 'fd00:43:1::/64'] } },
  pod('default/web', 'a', '10.43.0.1', 'fd00:43::1'),
  pod('default/asker', 'b', '10.43.1.1', 'fd00:43:1::1'),
  // serve on their node's own address
  pod('default/host', 'a'),
  pod('default/server', 'b'),
]
const HOST = ['172.31.43.2', 'fd00:31:43::2'] as const
const WEB = ['10.43.0.1', 'fd00:43::1'] as const

function v3(kind: string, name: string, spec: object): object {
  return { apiVersion: 'netplane.io/v3', kind, metadata: { name, labels: { host: name } }, spec }
}

/** Of node a, as node b reaches it. */
async function linkAddress(lab: Lab): Promise<string> {
  const text = await lab.mustRun('node/a', ['ip', '-6', 'addr', 'show', 'dev', 'eth0', 'scope', 'link'])
  return `${/fe80:[0-9a-f:]+/.exec(text)?.[0] ?? ''}%eth0`
}

/** How many hosts answer when node b asks all on its link, itself among them. */
async function answersToAll(lab: Lab): Promise<number> {
  const { stdout } = await lab.run('node/b', ['ping', '-6', '-c', '2', '-w', '3', 'ff02::1%eth0'])
  return new Set(stdout.match(/(?<=from )[0-9a-f:]+/g)).size
}

/** Host policy is other programs, and loading them on two nodes takes its time. */
const untilLoaded = (what: () => Promise<boolean>): Promise<true | undefined> => until(45_000, what)
const untilNone = (lab: Lab, from: string, to: readonly string[]): Promise<true | undefined> => untilLoaded(() => isSilent(lab, from, to))

test('host endpoints close the node, not its pods; policies and failsafe ports open it [once]', async () => {
  using manifests = new Manifests(CLUSTER)
  await using lab = await Lab.up({ name: 'tpolhost', resources: manifests.dir, agentCommand })
  expect([await answered(lab, 'node/b', HOST), await answered(lab, 'asker', WEB)]).toEqual([2, 2])

  const before = await answersToAll(lab)
  const onLink = await linkAddress(lab)
  expect(await answered(lab, 'node/b', [onLink])).toBe(1)
  expect(before).toBeGreaterThan(1)
  const endpoint = v3('HostEndpoint', 'a-all', { node: 'a', interfaceName: '*' })
  manifests.write([...CLUSTER, endpoint])
  expect(await untilNone(lab, 'node/b', HOST)).toBe(true)
  expect(await answered(lab, 'asker', WEB)).toBe(2)
  expect(await answersToAll(lab), 'nor does it answer what is for all').toBe(before - 1)
  expect(await answered(lab, 'node/b', [onLink]), 'nor by its link').toBe(0)

  const failsafe = (net?: string): object =>
    v3('FelixConfiguration', 'default', { failsafeInboundHostPorts: [{ protocol: 'TCP', port: 8080, net }] })
  manifests.write([...CLUSTER, endpoint, failsafe()])
  expect(await untilLoaded(async () => (await answered(lab, 'node/b', HOST)) === 2), lab.log('a')).toBe(true)
  manifests.write([...CLUSTER, endpoint, failsafe('::/0')])
  expect(await untilLoaded(async () => (await answered(lab, 'node/b', HOST)) === 1)).toBe(true)
  expect(await answered(lab, 'node/b', HOST.slice(1))).toBe(1)
  expect(await answered(lab, 'node/b', [onLink])).toBe(1)

  const policy = v3('GlobalNetworkPolicy', 'web', {
    selector: 'host == "a-all"',
    types: ['Ingress'],
    ingress: [{ action: 'Allow', protocol: 'TCP', source: { nets: ['172.31.43.3/32'] }, destination: { ports: [8080] } }],
  })
  const none = v3('FelixConfiguration', 'default', { failsafeInboundHostPorts: [] })
  manifests.write([...CLUSTER, endpoint, policy, none])
  expect(await untilLoaded(async () => (await answered(lab, 'node/b', HOST)) === 1)).toBe(true)
  expect([await answered(lab, 'node/b', HOST.slice(0, 1)), await answered(lab, 'asker', WEB)]).toEqual([1, 2])

  manifests.write(CLUSTER)
  expect(await untilLoaded(async () => (await answered(lab, 'node/b', HOST)) === 2)).toBe(true)
})

test('untracked policy is asked of every packet, first of all by XDP [once]', async () => {
  using manifests = new Manifests(CLUSTER)
  await using lab = await Lab.up({ name: 'tpolxdp', resources: manifests.dir, agentCommand })
  const isEarly = async (): Promise<boolean> => (await lab.mustRun('node/a', ['ip', '-details', 'link', 'show'])).includes('prog/xdp')
  const endpoint = v3('HostEndpoint', 'a-all', { node: 'a', interfaceName: '*' })
  const policy = (action: string, nets: readonly string[]): object => {
    const port = { ports: [8080] }
    return v3('GlobalNetworkPolicy', 'untracked', {
      selector: 'host == "a-all"',
      doNotTrack: true,
      applyOnForward: true,
      types: ['Ingress', 'Egress'],
      ingress: nets.map((net) => ({ action, protocol: 'TCP', source: { nets: [net] }, destination: port })),
      egress: nets.map((net) => ({ action, protocol: 'TCP', source: port, destination: { nets: [net] } })),
    })
  }
  expect(await isEarly()).toBe(false)
  // no rules of its own let anyone in, but untracked ones both ways
  manifests.write([...CLUSTER, endpoint, policy('Allow', ['172.31.43.3/32'])])
  expect(await untilLoaded(async () => (await answered(lab, 'node/b', HOST)) === 1), lab.log('a')).toBe(true)
  expect([await isEarly(), await answered(lab, 'node/b', HOST.slice(0, 1)), await answered(lab, 'asker', WEB)]).toEqual([true, 1, 2])

  // what they deny is denied for pods as well
  manifests.write([...CLUSTER, endpoint, policy('Deny', ['10.43.1.1/32', 'fd00:43:1::1/128'])])
  expect(await untilNone(lab, 'asker', WEB), lab.log('a')).toBe(true)

  // untracked policy, which knows of no flows, still lets in what failsafe ports of others answer
  const failsafe = v3('FelixConfiguration', 'default', { failsafeOutboundHostPorts: [{ protocol: 'TCP', port: 8080 }] })
  const other = ['172.31.43.3', 'fd00:31:43::3']
  const closed = v3('GlobalNetworkPolicy', 'untracked', {
    selector: 'host == "a-all"',
    doNotTrack: true,
    applyOnForward: true,
    types: ['Ingress'],
    ingress: [{ action: 'Deny' }],
  })
  manifests.write([...CLUSTER, endpoint, closed])
  expect(await untilNone(lab, 'node/a', other), lab.log('a')).toBe(true)
  manifests.write([...CLUSTER, endpoint, closed, failsafe])
  expect(await untilLoaded(async () => (await answered(lab, 'node/a', other)) === 2), lab.log('a')).toBe(true)
  expect(await answered(lab, 'node/b', HOST)).toBe(0)

  // nor are those of the node cut, by whichever of its addresses
  const own = v3('FelixConfiguration', 'default', { failsafeInboundHostPorts: [{ protocol: 'TCP', port: 8080 }] })
  const onLink = await linkAddress(lab)
  expect(await answered(lab, 'node/b', [onLink])).toBe(0)
  manifests.write([...CLUSTER, endpoint, closed, own])
  expect(await untilLoaded(async () => (await answered(lab, 'node/b', HOST)) === 2), lab.log('a')).toBe(true)
  expect(await answered(lab, 'node/b', [onLink])).toBe(1)

  manifests.write(CLUSTER)
  expect(await untilLoaded(async () => (await answered(lab, 'asker', WEB)) === 2 && !(await isEarly()))).toBe(true)
  expect(await answered(lab, 'node/b', HOST)).toBe(2)
})
