// SPDX-License-Identifier: Apache-2.0
/** What a pod lacks before its first packet may come. Layer: test. */
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { missingStep, type PodReadiness } from '#agent/dataplane/pod-readiness.ts'
import type { Interface } from '#agent/interfaces/table.ts'

const POD = { iface: 'npl1', addresses: [parseAddr('10.0.0.1')] }
const LINK = { kind: 'veth', master: 0, addresses: [], mac: '', mtu: 1500, up: true, running: true, loopback: false }

/** All of it is there, of a device with the index 5. */
function progress(less: Partial<PodReadiness> = {}): PodReadiness {
  const device: Interface = { ...LINK, index: 5, name: 'npl1' }
  return {
    interfaces: { all: () => [device], byName: (name) => (name === device.name ? device : undefined), local: () => [] },
    address: (_, ifindex) => (ifindex === 5 ? undefined : 'no row'),
    isSettled: ({ instance }) => instance === 5,
    ...less,
  }
}

test.each([
  { name: 'nothing', pod: POD, missing: undefined },
  { name: 'nothing of the device that it is', pod: { ...POD, index: 5 }, missing: undefined },
  { name: 'its device, while the one before is known', pod: { ...POD, index: 6 }, missing: 'npl1 has not been seen yet' },
  { name: 'its device', pod: { ...POD, iface: 'npl2' }, missing: 'npl2 has not been seen yet' },
  { name: 'all', pod: POD, less: { address: undefined }, missing: 'the programs are not loaded' },
  { name: 'a row', pod: POD, less: { address: () => 'no row' }, missing: 'no row' },
  { name: 'a program', pod: POD, less: { isSettled: ({ key }) => key === 'npl1/ingress' }, missing: 'no program runs at npl1/egress' },
  {
    name: 'the programs of this device',
    pod: POD,
    less: { isSettled: ({ instance }) => instance === 6 },
    missing: 'no program runs at npl1/ingress',
  },
] satisfies {
  name: string
  pod: Parameters<typeof missingStep>[0]
  less?: Partial<PodReadiness>
  missing: string | undefined
}[])('$name', ({ pod, less, missing }) => {
  expect(missingStep(pod, progress(less))).toBe(missing)
})
