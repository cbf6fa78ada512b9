// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { Health } from '#lib/obs/health.ts'
import { silentLog, type LogFields } from '#lib/obs/log.ts'
import { ownDevices } from '#agent/node/firewall/pod-devices.ts'
import { FIREWALL, FirewallWatch } from '#agent/watch/firewall-watch.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'

const CLOSED = '*filter\n:INPUT DROP [0:0]\n:FORWARD DROP [0:0]\n:OUTPUT ACCEPT [0:0]\nCOMMIT\n'

function watched() {
  const clock = new FakeClock()
  const health = new Health(() => 0)
  const lines: (LogFields & { readonly event: string })[] = []
  const say = (fields: LogFields, event: string): void => void lines.push({ ...fields, event })
  const node = { serves: true, saved: CLOSED, fails: false, runs: 0, pods: [ownDevices('npl')] }
  const watch = new FirewallWatch({
    ...{ clock, health, forwards: false },
    log: { ...silentLog, info: say, warn: say },
    serves: () => node.serves,
    pods: () => node.pods,
    run: ([tool]) => {
      node.runs++
      if (node.fails) return Promise.reject(new Error('broken'))
      return Promise.resolve(tool === 'iptables-nft-save' ? node.saved : undefined)
    },
  })
  const minute = async (): Promise<void> => {
    clock.advance(60_000)
    await watch.tick()
  }
  const condition = () => health.report().conditions.find(({ name }) => name === FIREWALL)
  return { watch, node, lines, minute, condition, health }
}

test('a chain that drops packets is logged once, with its remedy, and so is its end', async () => {
  const { watch, node, lines, minute, condition, health } = watched()
  await watch.tick()
  await minute()
  expect(lines).toEqual([
    expect.objectContaining({ event: 'firewall.detected', table: 'iptables-nft filter', chain: 'INPUT', by: 'policy', families: ['ipv4'] }),
  ])
  expect(condition()).toMatchObject({ ok: false, reason: expect.stringContaining('remedy: accept what comes in by npl*') as string })
  expect(health.report().ready).toBe(true)
  expect(watch.findings).toHaveLength(1)
  node.saved = CLOSED.replace('INPUT DROP', 'INPUT ACCEPT')
  await minute()
  expect(lines.slice(1).map(({ event }) => event)).toEqual(['firewall.cleared'])
  expect([condition()?.ok, watch.findings]).toEqual([true, []])
})

test('the firewall is not read before the node serves, nor more often than once a minute', async () => {
  const { watch, node } = watched()
  node.serves = false
  await watch.tick()
  expect(node.runs).toBe(0)
  node.serves = true
  await watch.tick()
  const { runs } = node
  await watch.tick()
  expect([runs > 0, node.runs]).toEqual([true, runs])
})

test('pods of another plugin that come meanwhile are asked about at once: also what they exchange with the network', async () => {
  const { watch, node, lines } = watched()
  node.saved = CLOSED.replace('INPUT DROP', 'INPUT ACCEPT')
  await watch.tick()
  expect(lines).toEqual([])
  node.pods = [{ name: 'cni0', prefix: undefined, routed: true }]
  await watch.tick()
  expect(lines.map(({ what, remedy }) => [what, remedy])).toEqual(
    ['packets of pods to other machines', 'packets of other machines to pods'].map((what) => [
      what,
      'accept what comes in or leaves by cni0 before',
    ]),
  )
})

test('a firewall that cannot be read is logged once, and is no finding', async () => {
  const { watch, node, lines, minute, condition } = watched()
  node.fails = true
  await watch.tick()
  await minute()
  expect(lines.map(({ event }) => event)).toEqual(['firewall.read-failed'])
  expect(condition()?.ok).toBe(true)
})
