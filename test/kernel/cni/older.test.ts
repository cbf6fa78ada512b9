// SPDX-License-Identifier: Apache-2.0
/** Pods that an older version has plugged in, and their end by this one. Layer: test. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { workloadInterface } from '#lib/model/pod.ts'
import { pod } from '../agent/manifests.ts'
import { CniNode, ips, waitingPod } from './node.ts'

const OLD = { pod: 'old' }
const HOST = workloadInterface({ namespace: 'default', name: 'old' })

let of: CniNode
beforeEach(async () => {
  of = await CniNode.make()
  mkdirSync(of.confDir, { recursive: true })
  writeFileSync(join(of.confDir, '10-netplane.conflist'), JSON.stringify({ name: 'k8s-pod-network', plugins: [{ type: 'netplane' }] }))
  of.plugOld(OLD, '10.1.1.1')
  // a node answers for the gateway where it has a way to it
  of.machine.sh('ip route add default via 192.0.2.254 dev eth0 onlink')
  of.machine.put('pods.json', [pod('old', '10.1.1.1'), waitingPod('a')])
})

afterEach(async () => {
  await of.machine[Symbol.asyncDispose]()
})

test('it keeps device and address beside new pods, and its DEL succeeds; with its namespace all of it is gone', async () => {
  const index = of.machine.sh(`ip -o link show ${HOST}`)
  expect(of.succeeds(OLD, 'ping -c 1 -W 2 192.0.2.1')).toBe(true)
  await of.ready()
  // the list has the same name
  const list = (): string => readFileSync(join(of.confDir, '10-netplane.conflist'), 'utf8')
  await expect.poll(list).toContain('netplane-cni')
  const added = of.add({ pod: 'a' })
  expect(ips(added)).toEqual(['10.1.1.2/32', 'fd00:1::1/128'])
  expect(of.machine.sh(`ip -o link show ${HOST}`)).toBe(index)
  // neither end knows the other's hardware address
  of.inPod(OLD, 'ip neigh flush dev eth0')
  for (const target of ['192.0.2.1', '10.1.1.2']) expect(of.succeeds(OLD, `ping -c 2 -i 0.2 -W 2 ${target}`), target).toBe(true)
  expect(of.succeeds({ pod: 'a' }, 'ping -c 2 -i 0.2 -W 2 10.1.1.1')).toBe(true)

  expect(of.call('DEL', OLD)).toEqual({ status: 0, output: {} })
  of.dropNetns(OLD)
  // the kernel takes a namespace apart after its last name has gone
  const left = (): string => of.machine.sh(`ip -o link show ${HOST} 2>/dev/null || true; ip route show 10.1.1.1`)
  await expect.poll(left).toBe('')
  expect(of.call('DEL', OLD)).toEqual({ status: 0, output: {} })
  expect(of.saved()).toHaveLength(1)
})
