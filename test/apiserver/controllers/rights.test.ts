// SPDX-License-Identifier: Apache-2.0
/** The controllers as their own account, with the roles that deploy/ has: they are enough, none of them is for nothing.
 * Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, namedOf } from '#lib/api/resource.ts'
import { parseCidr } from '#lib/base/ip.ts'
import { emptyBlock } from '#lib/ipam/block.ts'
import { CONTROLLERS_NAME } from '#lib/kube/objects/automatic-host-endpoint.ts'
import { blockName, IP_BLOCK, ipBlockObject } from '#lib/kube/objects/ip-block.ts'
import type { RbacRule } from '#lib/render/account.ts'
import { numberAt, textAt } from '../../../lab/raw.ts'
import { waitFor } from '../../../lab/wait.ts'
import { oneIn } from '../../support/steady/matrix.ts'
import { found } from '../objects.ts'
import { permissions, permissionsOf } from '../rights.ts'
import {
  addNode,
  CONFIGURATION,
  configure,
  Controllers,
  ControllersCluster,
  endpointNames,
  hostEndpoint,
  INFORMATION,
  LEASE,
  removeNode,
  ROLES,
  SYSTEM,
  V3,
} from './controllers.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'

const BUILD_MS = 30 * 60_000
const BLOCK = parseCidr('10.0.0.0/26')

let at: ControllersCluster

beforeAll(async () => {
  at = await ControllersCluster.start(true)
}, BUILD_MS)

afterAll(async () => {
  await at[Symbol.asyncDispose]()
})

/** As before a first start, but for definitions. */
async function prepare(): Promise<void> {
  const { admin } = at
  for (const named of [CONFIGURATION, INFORMATION, LEASE, { ...IP_BLOCK, name: blockName(BLOCK) }])
    await admin.delete(named).catch(() => undefined)
  for (const name of await endpointNames(admin)) await admin.delete({ apiVersion: V3, kind: 'HostEndpoint', name })
  for (const { metadata } of await admin.list({ apiVersion: 'v1', kind: 'Event' }))
    await admin.delete({ apiVersion: 'v1', kind: 'Event', namespace: metadata.namespace, name: metadata.name })
  await removeNode(admin, 'n1')
  await admin.create(hostEndpoint('n1-auto-hep', 'n2'))
  await admin.create(asApiObject(ipBlockObject(emptyBlock(BLOCK, 'gone'))))
}

interface Step {
  readonly act: () => Promise<unknown>
  readonly isDone: () => Promise<boolean>
}

function steps(): readonly Step[] {
  const { admin } = at
  const taken: { readonly apiVersion: string; readonly kind: string; readonly name: string } = {
    apiVersion: V3,
    kind: 'HostEndpoint',
    name: 'n1-auto-hep',
  }
  const isEvent = async (count: number): Promise<boolean> =>
    (await admin.list({ apiVersion: 'v1', kind: 'Event' })).some(
      (one) => textAt(one, 'reason') === 'NamesTaken' && numberAt(one, 'count') === count,
    )
  const zone = async (): Promise<string | undefined> => (await found(admin, taken))?.metadata.labels?.['zone']
  return [
    {
      act: () => Promise.resolve(),
      isDone: async () => (await found(admin, CONFIGURATION))?.['status'] !== undefined && (await found(admin, INFORMATION)) !== undefined,
    },
    {
      act: async () => {
        await addNode(admin, 'n1', { zone: 'a' })
        await configure(admin, { hostEndpoint: { autoCreate: 'Enabled' }, leakGracePeriod: '1ms', reconcilerPeriod: '1s' })
      },
      isDone: () => isEvent(1),
    },
    { act: () => admin.delete(taken), isDone: async () => (await zone()) === 'a' },
    {
      act: () => admin.patch({ apiVersion: 'v1', kind: 'Node', name: 'n1' }, { metadata: { labels: { zone: 'b' } } }, { type: 'merge' }),
      isDone: async () => (await zone()) === 'b',
    },
    { act: () => admin.patch(taken, { metadata: { labels: null } }, { type: 'merge' }), isDone: () => isEvent(2) },
    {
      act: () => admin.patch(INFORMATION, { spec: { clusterType: null } }, { type: 'merge' }),
      isDone: async () => textAt(await found(admin, INFORMATION), 'spec.clusterType') === 'k8s',
    },
    { act: () => Promise.resolve(), isDone: async () => (await found(admin, { ...IP_BLOCK, name: blockName(BLOCK) })) === undefined },
    {
      act: async () => {
        await admin.delete(taken)
        await waitFor(async () => ((await zone()) === 'b' ? true : undefined), { timeoutMs: HANG_MS, everyMs: 50 })
        await configure(admin, { hostEndpoint: { autoCreate: 'Disabled' } })
      },
      isDone: async () => (await endpointNames(admin)).length === 0,
    },
  ]
}

/** Stops with the program's words of a refusal; undefined: all is done. */
async function doAll(program: Controllers): Promise<string | undefined> {
  const refused = (): string | undefined => program.log.split('\n').find((line) => / is forbidden|cannot \w+ resource/.test(line))
  for (const [index, { act, isDone }] of steps().entries()) {
    await act().catch((thrown: unknown) => {
      if (refused() === undefined) throw thrown
    })
    const look = async (): Promise<string | undefined> => refused() ?? ((await isDone()) ? '' : undefined)
    const said = await waitFor(look, { timeoutMs: HANG_MS, everyMs: 50 })
    if (said === undefined) throw new Error(`not in time: step ${index}\n${program.log}`)
    if (said !== '') return said
  }
  return undefined
}

const allRules = (): readonly (readonly RbacRule[])[] => ROLES.map(({ rules }) => rules as readonly RbacRule[])

/** Resolves when the server goes by these rules, of each of the roles. */
async function setRules(rules: readonly (readonly RbacRule[])[]): Promise<void> {
  for (const [index, role] of ROLES.entries()) await at.admin.patch(namedOf(role), { rules: rules[index] }, { type: 'merge' })
  await using account = new ApiClient({ server: fromKubeconfig(at.kubeconfig) })
  const wanted = permissions(rules.flat()).join()
  const holds = async (): Promise<true | undefined> => ((await permissionsOf(account, SYSTEM)).join() === wanted ? true : undefined)
  if ((await waitFor(holds, { timeoutMs: HANG_MS, everyMs: 20 })) === undefined) throw new Error('the roles do not change')
}

/** In the words of {@link permissions}: what was asked and not refused. */
function used(): ReadonlySet<string> {
  const lines = readFileSync(join(at.folder, 'audit.log'), 'utf8').trim().split('\n')
  const events = lines.map((line): unknown => JSON.parse(line))
  const own = events.filter((event) => textAt(event, 'user.username') === `system:serviceaccount:${SYSTEM}:${CONTROLLERS_NAME}`)
  const allowed = own.filter((event) => numberAt(event, 'responseStatus.code') !== 403)
  return new Set(
    allowed.flatMap((event) => {
      const parts = ['resource', 'subresource'].flatMap((part) => textAt(event, `objectRef.${part}`) ?? [])
      const asked = `${textAt(event, 'verb') ?? ''} ${parts.join('/')}.${textAt(event, 'objectRef.apiGroup') ?? ''}`
      return [asked, `${asked} ${textAt(event, 'objectRef.name') ?? ''}`]
    }),
  )
}

test('the controllers do their whole work with their rights, and use every one of them', async () => {
  await prepare()
  {
    await using program = new Controllers(at)
    expect(await doAll(program)).toBeUndefined()
  }
  const unused = (): readonly string[] => permissions(allRules().flat()).filter((permission) => !used().has(permission))
  await expect.poll(unused).toEqual([])
}, 60_000)

test('without any one of their rules, something says so', async () => {
  const rules = allRules()
  const each = rules.flatMap((of, role) => of.map((rule, index) => [role, index, rule] as const))
  // each takes a whole work of the controllers
  for (const [role, index, rule] of oneIn(4, each)) {
    await prepare()
    await setRules(rules.with(role, (rules[role] ?? []).toSpliced(index, 1)))
    await using program = new Controllers(at)
    expect(await doAll(program), JSON.stringify({ without: rule })).toBeDefined()
  }
  await setRules(rules)
}, 300_000)
