// SPDX-License-Identifier: Apache-2.0
/** What making rows of a Service costs grows as its objects do, and not as the square of that. Layer: test. */
import { expect, test } from 'vitest'
import { atOnce } from '#lib/base/async/slices.ts'
import { parseCidr, parsePort } from '#lib/base/ip.ts'
import type { EndpointSlice } from '#lib/model/endpoint-slice.ts'
import type { Service } from '#lib/model/service.ts'
import { compileService } from '#agent/compile/services/compile-service.ts'
import type { ServiceContext } from '#agent/compile/services/compile-service.ts'
import { healthCheckOf } from '#agent/compile/services/health-checks.ts'
import { model } from '../../../support/build.ts'
import type { Manifest } from '../../../support/build.ts'

const CONTEXT: ServiceContext = {
  node: 'n1',
  zone: undefined,
  otherNode: () => undefined,
  selfAddresses: [],
  mode: 'Standard',
  tunnelPort: parsePort(4789),
  selection: 'Random',
  excluded: [parseCidr('100.64.0.0/10')],
  most: undefined,
}

function many<T>(size: number, one: (at: number) => T): T[] {
  return Array.from({ length: size }, (_, at) => one(at))
}

interface Of {
  readonly spec?: Manifest
  readonly status?: Manifest
  readonly ports?: readonly Manifest[]
  readonly endpoints?: readonly Manifest[]
}

const LOCAL = { type: 'LoadBalancer', externalTrafficPolicy: 'Local', healthCheckNodePort: 30_001 }

function objectsOf({
  spec = {},
  status = {},
  ports = numbered(1),
  endpoints = [{ addresses: ['10.0.0.1'] }],
}: Of): [Service, EndpointSlice] {
  const named = ports.map(({ name, port, protocol = 'TCP' }) => ({ name, port, protocol }))
  const manifests = [
    {
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { namespace: 'shop', name: 'web' }, status },
      spec: { clusterIP: '10.96.0.1', clusterIPs: ['10.96.0.1'], ports, ...LOCAL, ...spec },
    },
    {
      ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4', ports: named, endpoints },
      metadata: { namespace: 'shop', name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
    },
  ]
  return manifests.map((manifest) => model(manifest)) as [Service, EndpointSlice]
}

function costOf(of: Of): number {
  const [service, slice] = objectsOf(of)
  const { user, system } = process.threadCpuUsage()
  atOnce(compileService(service, [slice], CONTEXT))
  healthCheckOf(service, [slice], 'n1')
  const after = process.threadCpuUsage()
  return (after.user + after.system - user - system) / 1000
}

const numbered = (size: number): Manifest[] => many(size, (at) => ({ name: `p${at}`, port: 1 + at }))
const v6 = (at: number): string => `fd00::${(at + 1).toString(16)}`

/** By field; those that multiply are as many as each other. */
const FIELDS: Readonly<Record<string, { readonly size: number; readonly of: (size: number) => Of }>> = {
  ports: { size: 4000, of: (size) => ({ ports: numbered(size) }) },
  'pods with one address': {
    size: 6000,
    of: (size) => ({
      endpoints: many(size, (at) => ({ addresses: ['10.0.0.1'], targetRef: { kind: 'Pod', name: `p${at}`, uid: `u${at}` } })),
    }),
  },
  'ports, and addresses of the other family': {
    size: 2000,
    of: (size) => ({ ports: numbered(size), spec: { externalIPs: many(size, v6) } }),
  },
  'ports, and one address many times': {
    size: 2000,
    of: (size) => ({ ports: numbered(size), spec: { externalIPs: many(size, () => '192.0.2.1') } }),
  },
  'ports, and addresses that are not served': {
    size: 2000,
    of: (size) => ({ ports: numbered(size), spec: { externalIPs: many(size, (at) => `100.64.${at >> 8}.${at & 255}`) } }),
  },
  'ports, and source ranges of the other family': {
    size: 2000,
    of: (size) => ({
      ports: numbered(size),
      spec: { loadBalancerSourceRanges: many(size, (at) => `${v6(at)}/128`) },
      status: { loadBalancer: { ingress: [{ ip: '192.0.2.1' }] } },
    }),
  },
  'addresses, and endpoints of a port over UDP': {
    size: 2000,
    of: (size) => ({
      ports: [{ name: 'dns', port: 53, protocol: 'UDP' }],
      spec: { externalIPs: many(size, (at) => `198.18.${at >> 8}.${at & 255}`) },
      endpoints: many(size, (at) => ({ addresses: [`10.0.${at >> 8}.${at & 255}`] })),
    }),
  },
}

/** A square would be sixteen times. What is as quick as this is no matter. */
const MOST_TIMES = 7
const QUICK_MS = 40

test.each(Object.entries(FIELDS))('%s', { timeout: 120_000 }, (_what, { size, of }) => {
  const tries: string[] = []
  for (let attempt = 0; attempt < 3; attempt++) {
    const [once, fourTimes] = [costOf(of(size)), costOf(of(4 * size))]
    tries.push(`${once.toFixed(0)} ms, then ${fourTimes.toFixed(0)} ms`)
    if (process.env['GROWTH'] !== undefined) console.log(tries.at(-1))
    if (fourTimes < Math.max(QUICK_MS, MOST_TIMES * once)) return
  }
  expect(tries).toEqual(`less than ${MOST_TIMES} times as much`)
})

test('a service gives way to others after each frontend and each list of endpoints', () => {
  const externalIPs = many(20, (at) => `198.18.0.${1 + at}`)
  const [service, slice] = objectsOf({ ports: numbered(10), spec: { externalIPs } })
  const work = compileService(service, [slice], CONTEXT)
  let steps = 0
  let step = work.next()
  for (; step.done !== true; step = work.next()) steps++
  const frontends = step.value.rows.filter(({ table }) => table === 'frontends')
  const lists = new Set(step.value.rows.flatMap((row) => (row.table === 'backends' ? [row.key.list] : [])))
  expect([frontends.length, lists.size]).toEqual([210, 10])
  expect(steps).toBeGreaterThanOrEqual(frontends.length + lists.size)
})
