// SPDX-License-Identifier: Apache-2.0
/** Edits of manifests of this form: each is carried, or told with its reason. Layer: test. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { asApiObject, isApiObject, type ApiObject } from '#lib/api/resource.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { readManifest } from '#lib/manifests/read.ts'
import { MANIFESTS } from '#lib/render/manifests.ts'
import type { Edits } from '#upgrade/edits/edit.ts'
import { editText } from '#upgrade/edits/text.ts'
import { findInstallation } from '#upgrade/found/find.ts'
import { editsIn } from '#upgrade/plan/edits.ts'
import { targetObjects } from '#upgrade/plan/target.ts'
import { installation, installed, ofAgents, ofPods, variable, type Change, type Steps } from './served.ts'

/** Of the version that comes. */
const NEXT = '3.31.6'
const DAEMON_SET = 'DaemonSet netplane-node'
const CONTROLLERS = 'Deployment netplane-controllers'
const OPERATOR = 'Deployment netplane-operator'

function deployed(file: string): readonly ApiObject[] {
  const read = readManifest(file, readFileSync(join(packageRoot(), 'deploy', file), 'utf8'))
  if (read.kind !== 'ok') throw new Error(file)
  return read.objects.map(({ value }) => value).filter(isApiObject)
}

function node(labels: object = {}): ApiObject {
  return asApiObject({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'a', labels } })
}

interface Read {
  readonly file?: string
  readonly changes?: readonly Change[]
  readonly version?: string
  readonly others?: readonly ApiObject[]
  readonly server?: string
}

function read({ file = 'manifests/netplane.yaml', changes = [], version = NEXT, others = [node()], server = 'v1.34.0' }: Read): Edits {
  const definitions = (object: ApiObject): boolean => object.kind !== 'CustomResourceDefinition'
  const facts = { serverVersion: server, objects: [...installed(deployed(file).filter(definitions), changes), ...others] }
  const { found } = findInstallation(facts)
  if (found === undefined) throw new Error('nothing is found')
  return editsIn(facts, found, version)
}

function change(resource: string, steps: Steps, value: unknown): Change {
  return { resource, steps, value, manager: 'kubectl-edit' }
}

const ofControllers = (...steps: Steps): Steps => ofPods('containers', '[netplane-controllers]', ...steps)
const ofOperator = (...steps: Steps): Steps => ofPods('containers', '[netplane-operator]', ...steps)

/** Agents that the operator has made. */
const AGENTS = installed(deployed('manifests/netplane.yaml').filter(({ kind }) => kind === 'DaemonSet')).map((one) =>
  asApiObject({ ...one, metadata: { ...one.metadata, namespace: 'netplane-system' } }),
)

describe('untouched it has none', () => {
  test.each(MANIFESTS)('%s', (manifest) => {
    expect(read({ file: `manifests/${manifest}.yaml` }).edits).toEqual([])
  })

  test.each([
    ['of a platform whose own folders an upgrade would give', [node({ 'node.openshift.io/os_id': 'rhcos' })], 'v1.34.0'],
    ['of k3s', [node()], 'v1.34.0+k3s1'],
  ])('%s', (_, others, server) => {
    expect(read({ others, server }).edits).toEqual([])
  })

  test('the operator', () => {
    expect(read({ file: 'operator/netplane-operator.yaml', others: [node(), ...AGENTS] }).edits).toEqual([])
  })
})

test.each([
  [
    'resources',
    change(DAEMON_SET, ofAgents('resources', 'requests', 'cpu'), '333m'),
    { nodePods: { resources: { requests: { cpu: '333m', memory: '200Mi' } } } },
  ],
  [
    'resources of the controllers',
    change(CONTROLLERS, ofControllers('resources', 'limits'), { memory: '1Gi' }),
    { controllerPods: { resources: { requests: { cpu: '50m', memory: '110Mi' }, limits: { memory: '1Gi' } } } },
  ],
  ['a label of nodes', change(DAEMON_SET, ofPods('nodeSelector', 'pool'), 'a'), { nodePods: { nodeSelector: { pool: 'a' } } }],
  [
    'a toleration',
    change(CONTROLLERS, ofPods('tolerations', '[own:]'), { key: 'own', operator: 'Exists' }),
    { controllerPods: { tolerations: [{ key: 'own', operator: 'Exists' }] } },
  ],
  [
    'an annotation of pods',
    change(DAEMON_SET, ['spec', 'template', 'metadata', 'annotations', 'team'], 'net'),
    { nodePods: { annotations: { team: 'net' } } },
  ],
  ['a pull secret', change(DAEMON_SET, ofPods('imagePullSecrets', '[pull]'), { name: 'pull' }), { imagePullSecrets: [{ name: 'pull' }] }],
  [
    'how many nodes at a time',
    change(DAEMON_SET, ['spec', 'updateStrategy', 'rollingUpdate', 'maxUnavailable'], '10%'),
    { nodeUpdateStrategy: { maxUnavailable: '10%' } },
  ],
  ['the MTU of pods', change(DAEMON_SET, ofAgents('args'), args('--cni-mtu=1400')), { netplaneNetwork: { mtu: 1400 } }],
  ['no host ports', change(DAEMON_SET, ofAgents('args'), args('--cni-no-host-ports')), { netplaneNetwork: { hostPorts: 'Disabled' } }],
  [
    'the folder of plugins',
    change(DAEMON_SET, ofPods('volumes', '[cni-bin]', 'hostPath', 'path'), '/opt/bin'),
    { cni: { binDir: '/opt/bin' } },
  ],
  [
    'the folder of plugins, as a flag',
    change(
      DAEMON_SET,
      ofAgents('args'),
      args().map((flag) => flag.replace('--cni-bin-on-node=/opt/cni/bin', '--cni-bin-on-node=/opt/bin')),
    ),
    { cni: { binDir: '/opt/bin' } },
  ],
  [
    'a registry',
    change(CONTROLLERS, ofControllers('image'), 'reg.example.com/team/netplane:3.31.5'),
    { registry: 'reg.example.com', imagePath: 'team' },
  ],
  [
    'the enterprise image',
    change(DAEMON_SET, ofAgents('image'), 'reg.example.com/netplane-enterprise:3.31.5'),
    { registry: 'reg.example.com', variant: 'NetplaneEnterprise' },
  ],
] as const)('%s is carried', (_, edit, installation) => {
  const { installation: carried, refusals, edits } = read({ changes: [edit] })
  expect(refusals).toEqual([])
  expect(carried).toEqual(installation)
  expect(edits.map(({ managers }) => managers)).toEqual([['kubectl-edit']])
})

function args(...more: readonly string[]): readonly string[] {
  return [
    ...['--node=$(NODE_NAME)', '--cni-conf-dir=/etc/cni/net.d', '--cni-bin-dir=/opt/cni/bin'],
    ...['--node-root=/host', '--cni-conf-on-node=/etc/cni/net.d', '--cni-bin-on-node=/opt/cni/bin', ...more],
    ...['--daemon-set=$(NAMESPACE)/netplane-node', '--datastore-file=/run/netplane-datastore/ready'],
  ]
}

test('variables are settings of FelixConfiguration', () => {
  const changes = [variable('FELIX_LOGSEVERITYSCREEN', 'Debug'), variable('FELIX_BPFCONNTRACKTIMEOUTS_UDPTIMEOUT', '30s')]
  const { felix, refusals } = read({ changes })
  expect(refusals).toEqual([])
  expect(felix).toEqual({ logSeverityScreen: 'Debug', bpfConntrackTimeouts: { udpTimeout: '30s' } })
  expect(read({ changes: [variable('FELIX_IPTABLESBACKEND', 'NFT')] }).edits.map(editText)).toEqual([
    expect.stringContaining('left: agents do not read it'),
  ])
})

test('agents of an earlier form, which followed no folders of CNI, are refused nothing', () => {
  const changes = [
    change(
      DAEMON_SET,
      ofAgents('args'),
      args().filter((flag) => !/^--(node-root|cni-.*-on-node)=/.test(flag)),
    ),
    change(DAEMON_SET, ofPods('volumes', '[node-root]'), undefined),
    change(DAEMON_SET, ofAgents('volumeMounts', '[/host]'), undefined),
  ]
  expect(read({ changes }).refusals).toEqual([])
})

test('an operator of an earlier form, without what came later, is refused nothing', () => {
  const changes = [
    change(OPERATOR, ofOperator('args'), ['--namespace=$(NAMESPACE)', '--health-port=9098']),
    change(OPERATOR, ofOperator('env', '[NODE_NAME]'), undefined),
    change(OPERATOR, ofOperator('terminationMessagePolicy'), undefined),
  ]
  const { refusals, edits } = read({ file: 'operator/netplane-operator.yaml', others: [node(), ...AGENTS], changes })
  expect(refusals).toEqual([])
  expect(edits.map(({ field }) => field.replace(/^.*\]\./, ''))).toEqual(['args[--node]', 'env[NODE_NAME]', 'terminationMessagePolicy'])
})

test.each([
  ['a setting with a wrong value', variable('FELIX_PROMETHEUSMETRICSPORT', '0'), 'it must be 1..65535'],
  ['a variable that is no setting', variable('HTTPS_PROXY', 'http://proxy'), 'this version has no place for it'],
  ['a port of the probes', variable('FELIX_HEALTHPORT', '9999'), 'probes and folders of the pod go by it'],
  ['an own container', change(DAEMON_SET, ofPods('containers', '[shell]'), { name: 'shell', image: 'busybox' }), 'no place for containers'],
  ['an own volume', change(DAEMON_SET, ofPods('volumes', '[own]'), { name: 'own', emptyDir: {} }), 'folders of this version alone'],
  ['another image', change(CONTROLLERS, ofControllers('image'), 'busybox:1'), 'busybox is not a copy'],
  ['another flag', change(DAEMON_SET, ofAgents('args'), args('--metrics=1')), 'flags of their version alone'],
  ['another priority', change(DAEMON_SET, ofPods('priorityClassName'), 'low'), 'keep the priority'],
  [
    'resources of the container beside',
    change(DAEMON_SET, ofPods('containers', '[datastore]', 'resources', 'limits'), { cpu: '1' }),
    'no place for it',
  ],
  [
    'a flag of the operator',
    change(OPERATOR, ofOperator('args'), ['--namespace=$(NAMESPACE)', '--node=$(NODE_NAME)', '--health-port=1']),
    'the operator has the flags',
  ],
  ['a variable of the operator', change(OPERATOR, ofOperator('env', '[A]'), { name: 'A', value: 'b' }), 'this version has no place for it'],
])('%s is refused, with where it is', (_, edit, reason) => {
  const isOperator = edit.resource === OPERATOR
  const { refusals, edits } = isOperator
    ? read({ file: 'operator/netplane-operator.yaml', others: [node(), ...AGENTS], changes: [edit] })
    : read({ changes: [edit] })
  expect(refusals).toEqual([expect.objectContaining({ reason: expect.stringContaining(reason) as unknown, field: edits[0]?.field })])
  expect(refusals[0]?.value).not.toBeUndefined()
})

test('what was chosen for the pods of the operator stays there', () => {
  const changes = [
    change(OPERATOR, ofOperator('resources', 'requests', 'cpu'), '90m'),
    change(OPERATOR, ofPods('tolerations', '[own:]'), { key: 'own', operator: 'Exists' }),
    change(OPERATOR, ofPods('dnsConfig'), { nameservers: ['10.0.0.2'] }),
    change(OPERATOR, ofOperator('image'), 'reg.example.com/netplane:3.31.5'),
  ]
  const { edits, refusals, installation } = read({ file: 'operator/netplane-operator.yaml', others: [node(), ...AGENTS], changes })
  expect(refusals).toEqual([])
  expect(edits.map(({ outcome }) => outcome.kind)).toEqual(['kept', 'kept', 'kept', 'kept'])
  expect(installation).toEqual({})
})

describe('what an upgrade has carried before', () => {
  const carried = { nodePods: { annotations: { team: 'net' }, resources: { requests: { cpu: '333m' } } } }
  const annotation = change(DAEMON_SET, ['metadata', 'annotations', 'upgrade.netplane.io/carried'], JSON.stringify(carried))
  const before = [
    annotation,
    change(DAEMON_SET, ['spec', 'template', 'metadata', 'annotations', 'team'], 'net'),
    change(DAEMON_SET, ofAgents('resources'), { requests: { cpu: '333m' } }),
  ]

  test('is no edit, and stays', () => {
    expect(read({ changes: before })).toMatchObject({ edits: [], installation: carried })
  })

  test('gets what was edited since', () => {
    const { installation, refusals } = read({ changes: [...before, change(DAEMON_SET, ofAgents('resources', 'requests', 'cpu'), '500m')] })
    expect([refusals, installation]).toEqual([[], { nodePods: { annotations: { team: 'net' }, resources: { requests: { cpu: '500m' } } } }])
  })

  test('is refused where it was taken away on the object alone', () => {
    const gone = change(DAEMON_SET, ['spec', 'template', 'metadata', 'annotations', 'team'], undefined)
    expect(read({ changes: [...before, gone] }).refusals).toEqual([
      expect.objectContaining({
        field: 'spec.template.metadata.annotations.team',
        remedy: expect.stringContaining('upgrade.netplane.io/carried') as unknown,
      }),
    ])
  })
})

test('of a newer version what the writer of the object wrote may be its own: it is told; what another wrote is refused', () => {
  const writer = 'kubectl-client-side-apply'
  const changes = (manager: string) => [{ ...change(DAEMON_SET, ofPods('hostPID'), true), manager }]
  const older = { version: '3.31.4' }
  expect(read({ ...older, changes: changes(writer) })).toMatchObject({ refusals: [], edits: [{ outcome: { kind: 'left' } }] })
  expect(read({ ...older, changes: changes('kubectl-patch') }).refusals).toHaveLength(1)
  expect(read({ changes: changes(writer) }).refusals).toHaveLength(1)
})

test('workloads of this version that a run has applied are left as they are', () => {
  const edit = change(DAEMON_SET, ofPods('hostPID'), true)
  const applied = (objects: readonly ApiObject[]): readonly ApiObject[] =>
    objects.map((one) => {
      const entry = { manager: 'netplanectl-upgrade', operation: 'Apply', fieldsV1: {} }
      return asApiObject({ ...one, metadata: { ...one.metadata, managedFields: [entry] } })
    })
  const facts = { serverVersion: 'v1.34.0', objects: applied(installed(deployed('manifests/netplane.yaml'), [edit])) }
  const { found } = findInstallation(facts)
  if (found === undefined) throw new Error('nothing is found')
  expect(editsIn(facts, found, '3.31.5').refusals).toEqual([])
  expect(editsIn(facts, found, NEXT).refusals).toHaveLength(1)
})

test('what a run that was cut off has not replaced yet is of an older form, and no edit', () => {
  const older = installation('3.27.5', 'netplane').filter(({ kind }) => kind !== 'DaemonSet' && kind !== 'ConfigMap')
  const agents = installed(deployed('manifests/netplane.yaml')).filter(({ kind }) => kind === 'DaemonSet')
  const facts = { serverVersion: 'v1.34.0', objects: [...agents, ...older] }
  const { found } = findInstallation(facts)
  if (found === undefined) throw new Error('nothing is found')
  expect(found.variant).toBeUndefined()
  expect(editsIn(facts, found, NEXT).edits).toEqual([])
})

test('what is carried is what is rendered: the pods of the next version have it', () => {
  const facts = {
    serverVersion: 'v1.34.0',
    objects: installed(deployed('manifests/netplane.yaml'), [change(DAEMON_SET, ofAgents('resources', 'requests', 'cpu'), '333m')]),
  }
  const { found } = findInstallation(facts)
  if (found === undefined) throw new Error('nothing is found')
  const { installation } = editsIn(facts, found, NEXT)
  const text = JSON.stringify(
    targetObjects({ facts, found, carried: installation, version: NEXT }).find(({ kind }) => kind === 'DaemonSet'),
  )
  expect(text).toContain('"resources":{"requests":{"cpu":"333m","memory":"200Mi"}}')
  expect(text).toContain('netplane:3.31.6')
})
