// SPDX-License-Identifier: Apache-2.0
/** The operator as its own account, with the roles that deploy/ has: they are enough, none of them is for nothing, and
 * a refusal is told. Layer: test. */
import type { ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, namedOf, type Named } from '#lib/api/resource.ts'
import type { RbacRule } from '#lib/render/account.ts'
import { allDefinitions, userRoles } from '#lib/render/definitions.ts'
import { OPERATOR, OPERATOR_PODS, OPERATOR_SECRETS, renderOperator, secretsBinding } from '#lib/render/operator-pod.ts'
import { felixSchema } from '#agent/config/open-api.ts'
import { listAt, numberAt, textAt } from '../../../lab/raw.ts'
import { waitFor } from '../../../lab/wait.ts'
import { kubernetesPrograms } from '../../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../../testkit/kubernetes/loopback-cluster.ts'
import { oneIn } from '../../support/steady/matrix.ts'
import { issueToken, permissions, permissionsOf } from '../rights.ts'
import { startOperator, stopProcess } from '../run.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'
import { constraintsDefinition, networkDefinition } from './openshift.ts'
import { doAll, INSTALLATION, MACHINE, NETWORK, prepare, SYSTEM } from './whole-work.ts'

const BUILD_MS = 30 * 60_000
/** where its role for secrets holds as well, to see when the server goes by it */
const ELSEWHERE = 'kube-public'
/** a definition that it makes; the others are there before it */
const MISSING = 'flowuis.operator.netplane.io'

const rendered = renderOperator({ namespace: OPERATOR, image: 'x', pods: OPERATOR_PODS })
/** Of people, not of the operator. */
const ofUsers = new Set(userRoles().map((role) => asApiObject(role).metadata.name))
const roles = rendered.filter(({ kind, metadata }) => (kind === 'ClusterRole' || kind === 'Role') && !ofUsers.has(metadata.name))

let folder = ''
let cluster: LoopbackCluster
let admin: ApiClient
let kubeconfig = ''

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-rights-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder, audit: true })
  admin = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  await admin.create(asApiObject({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: OPERATOR } }))
  for (const object of rendered) await admin.create(object)
  await admin.create(asApiObject(secretsBinding({ from: OPERATOR, to: ELSEWHERE })))
  for (const definition of allDefinitions(felixSchema()).map(asApiObject))
    if (definition.metadata.name !== MISSING) await admin.create(definition)
  await admin.create(constraintsDefinition())
  await admin.create(networkDefinition())
  const account = rendered.find(({ kind }) => kind === 'ServiceAccount')
  if (account !== undefined) kubeconfig = cluster.kubeconfig({ token: await issueToken(admin, namedOf(account)) })
}, BUILD_MS)

afterAll(async () => {
  await admin[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** An operator as the account, until it goes out of scope. */
class Operator implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #log: string

  constructor() {
    this.#log = join(folder, 'operator.log')
    this.#child = startOperator(kubeconfig, this.#log, '--system-namespace', SYSTEM, '--node', MACHINE.name)
  }

  /** What it says of a refusal, in its log or in the status of a component. */
  async refused(): Promise<string | undefined> {
    const statuses = await admin.list(NETWORK).catch(() => [])
    const said = [
      ...readFileSync(this.#log, 'utf8').split('\n'),
      ...statuses.flatMap((status) => listAt(status, 'status.conditions')).map((one) => textAt(one, 'message') ?? ''),
    ]
    return said.find((line) => / is forbidden|"Forbidden"|cannot \w+ resource/.test(line))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await stopProcess(this.#child)
  }
}

/** Resolves when the server goes by these rules, of each of the roles. */
async function setRules(rules: readonly (readonly RbacRule[])[]): Promise<void> {
  for (const [at, role] of roles.entries()) await admin.patch(namedOf(role), { rules: rules[at] }, { type: 'merge' })
  await using account = new ApiClient({ server: fromKubeconfig(kubeconfig) })
  const wanted = permissions(rules.flat()).join()
  const holds = async (): Promise<true | undefined> => {
    const each = await Promise.all([OPERATOR, ELSEWHERE, 'kube-system'].map((namespace) => permissionsOf(account, namespace)))
    return [...new Set(each.flat())].sort().join() === wanted ? true : undefined
  }
  if ((await waitFor(holds, { timeoutMs: HANG_MS, everyMs: 20 })) === undefined) throw new Error('the roles do not change')
}

const allRules = (): readonly (readonly RbacRule[])[] => roles.map(({ rules }) => rules as readonly RbacRule[])

interface Request {
  /** in the words of {@link permissions} */
  readonly permissions: readonly string[]
  readonly namespace: string | undefined
  readonly isRefused: boolean
}

/** What the account has asked for; a watch is told of when it ends. */
function requests(): readonly Request[] {
  return readFileSync(join(folder, 'audit.log'), 'utf8')
    .trim()
    .split('\n')
    .map((line): unknown => JSON.parse(line))
    .filter((event) => textAt(event, 'user.username') === `system:serviceaccount:${OPERATOR}:${OPERATOR}`)
    .map((event) => {
      const parts = ['resource', 'subresource'].flatMap((part) => textAt(event, `objectRef.${part}`) ?? [])
      const what = `${parts.join('/')}.${textAt(event, 'objectRef.apiGroup') ?? ''}`
      const code = numberAt(event, 'responseStatus.code')
      // an apply that makes the object needs both
      const asked = [...(code === 201 ? ['create'] : []), textAt(event, 'verb') ?? ''].map((verb) => `${verb} ${what}`)
      const name = textAt(event, 'objectRef.name')
      return {
        permissions: [...asked, ...(name === undefined ? [] : asked.map((one) => `${one} ${name}`))],
        namespace: textAt(event, 'objectRef.namespace'),
        isRefused: code === 403,
      }
    })
}

/** It asks for its copies of secrets from the start, and for the right to see them when there is an Installation. */
function refusals(): readonly string[] {
  const isOfCopies = ({ permissions: [first], namespace }: Request): boolean => first === 'list secrets.' && namespace === SYSTEM
  const all = requests()
  const bound = all.findIndex((request) => isOfCopies(request) && !request.isRefused)
  return all.flatMap((request, at) => (request.isRefused && !(isOfCopies(request) && at < bound) ? [request.permissions.join()] : []))
}

/** Some are no request of their own, but let others pass: they are missed when they are not there. By "use" OpenShift's
 * admission goes, which is not here. */
const isAsked = (permission: string): boolean => !/^(bind|escalate|use)\b/.test(permission)

/** Of each role what was never asked for where it holds. */
function unused(): readonly string[] {
  const done = requests().filter(({ isRefused }) => !isRefused)
  return roles.flatMap(({ kind, metadata, rules }) => {
    const within = metadata.name === OPERATOR_SECRETS ? SYSTEM : kind === 'Role' ? metadata.namespace : undefined
    const used = new Set(done.flatMap((one) => (within === undefined || one.namespace === within ? one.permissions : [])))
    const all = permissions(rules as readonly RbacRule[])
    return all.filter((permission) => isAsked(permission) && !used.has(permission))
  })
}

test('the operator does its whole work with its rights, is refused nothing, and uses every one of them', async () => {
  await prepare(admin)
  {
    await using operator = new Operator()
    expect(await doAll(admin, () => operator.refused())).toBeUndefined()
  }
  await expect.poll(unused).toEqual([])
  expect(refusals()).toEqual([])
}, 60_000)

test('without any one of its rules, something says so', async () => {
  const rules = allRules()
  const each = rules.flatMap((of, role) => of.flatMap((rule, at) => lessened(rule).map((less) => [role, at, rule, less] as const)))
  // each takes a whole work of an operator
  for (const [role, at, rule, less] of oneIn(15, each)) {
    await prepare(admin)
    await setRules(rules.with(role, (rules[role] ?? []).toSpliced(at, 1, ...less)))
    await using operator = new Operator()
    const without = JSON.stringify({ without: rule, but: less })
    const said = await doAll(admin, () => operator.refused()).catch((cause: unknown) => {
      throw new Error(without, { cause })
    })
    expect(said, without).toBeDefined()
  }
  await setRules(rules)
}, 600_000)

test('what a pass may not read is told in the status, and once, until it may', async () => {
  const rules = allRules()
  await prepare(admin)
  // all that the preflight alone reads
  await setRules(rules.map((of) => of.filter(({ verbs }) => verbs.join() !== 'list')))
  await using operator = new Operator()
  expect(await doAll(admin, () => operator.refused())).toContain(' is forbidden')
  const degraded = async (named: Named): Promise<unknown> =>
    listAt(await admin.get(named).catch(() => undefined), 'status.conditions').find((one) => textAt(one, 'type') === 'Degraded')
  const message = expect.stringMatching(/networkpolicies\.networking\.k8s\.io is forbidden: User .* cannot list/) as unknown
  const refused = expect.objectContaining({ status: 'True', reason: 'Refused', message }) as unknown
  for (const named of [NETWORK, INSTALLATION]) await expect.poll(() => degraded(named)).toEqual(refused)
  const version = async (): Promise<unknown> => (await admin.get(NETWORK)).metadata.resourceVersion
  const before = await version()
  // it tries again every two seconds
  await new Promise((resolve) => setTimeout(resolve, 3000))
  expect(await version()).toBe(before)
  await setRules(rules)
  const missing = expect.objectContaining({ reason: 'PullSecretMissing' }) as unknown
  for (const named of [NETWORK, INSTALLATION]) await expect.poll(() => degraded(named)).toEqual(missing)
}, 60_000)

/** Without it; of one for objects by their names: without each name, and without each verb that is no request. */
function lessened(rule: RbacRule): readonly (readonly RbacRule[])[] {
  const { resourceNames, verbs } = rule
  if (verbs.includes('use')) return []
  if (resourceNames === undefined) return [[]]
  const without = <T>(all: readonly T[], one: T): readonly T[] => all.filter((other) => other !== one)
  return [
    ...verbs.filter((verb) => !isAsked(verb)).map((verb) => ({ ...rule, resourceNames, verbs: without(verbs, verb) })),
    ...resourceNames.map((name) => ({ ...rule, resourceNames: without(resourceNames, name) })),
  ].map((less) => (less.verbs.length > 0 && less.resourceNames.length > 0 ? [less] : []))
}
