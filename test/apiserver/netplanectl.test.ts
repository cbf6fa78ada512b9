// SPDX-License-Identifier: Apache-2.0
/** netplanectl's verbs before a real API server, as people type them. Layer: test. */
import { execFile, execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { ApiClient } from '#lib/api/client.ts'
import { fromKubeconfig } from '#lib/api/connection/kubeconfig.ts'
import { asApiObject, type ApiObject, type Named } from '#lib/api/resource.ts'
import { packageRoot, packageVersion } from '#lib/base/os/package.ts'
import { CLUSTER_INFORMATION } from '#lib/kube/objects/cluster-information.ts'
import { allDefinitions } from '#lib/render/definitions.ts'
import { labelsOf, NODE } from '#lib/render/input.ts'
import { felixSchema } from '#agent/config/open-api.ts'
import { waitFor } from '../../lab/wait.ts'
import { kubernetesPrograms } from '../../testkit/kubernetes/build/programs.ts'
import { LoopbackCluster } from '../../testkit/kubernetes/loopback-cluster.ts'
import { compileCache } from '../../testkit/base/compile-cache.ts'
import { tokenFor } from './accounts.ts'
import { startKubelet } from './kubelet.ts'

const BUILD_MS = 30 * 60_000
const SOON = { timeoutMs: 30_000, everyMs: 50 }
const V3 = 'netplane.io/v3'
const HOST = { apiVersion: V3, kind: 'HostEndpoint' } as const
const JWT = 'eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl'

let folder = ''
let cluster: LoopbackCluster
let client: ApiClient

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-ctl-'))
  cluster = await LoopbackCluster.start({ programs: await kubernetesPrograms(), folder })
  client = new ApiClient({ server: fromKubeconfig(cluster.kubeconfig()) })
  const program = join(folder, 'bin/netplanectl')
  mkdirSync(dirname(program))
  writeFileSync(program, `#!/bin/sh\nexec ${process.execPath} ${join(packageRoot(), 'dist/cli/main.js')} "$@"\n`)
  chmodSync(program, 0o755)
}, BUILD_MS)

afterAll(async () => {
  await client[Symbol.asyncDispose]()
  await cluster[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A line as a shell takes it, in a folder of the test's own. */
function shell(line: string, env: Readonly<Record<string, string>> = { KUBECONFIG: cluster.kubeconfig() }): Promise<Ended> {
  const options = {
    cwd: folder,
    env: { ...compileCache(), PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}`, HOME: folder, ...env },
  }
  return new Promise((settle) => {
    execFile('bash', ['-c', line], options, (error, stdout, stderr) => {
      settle({ code: error === null ? 0 : Number(error.code), stdout, stderr })
    })
  })
}

/** Fails unless it ends well; what it prints. */
async function ok(line: string): Promise<string> {
  const { code, stdout, stderr } = await shell(line)
  expect(`${code} ${stderr}`).toBe('0 ')
  return stdout
}

function put(name: string, ...objects: readonly unknown[]): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  writeFileSync(join(folder, name), objects.map((one) => (typeof one === 'string' ? one : JSON.stringify(one))).join('\n---\n'))
}

function host(name: string, spec: object = {}, metadata: object = {}): object {
  return { ...HOST, metadata: { name, ...metadata }, spec: { node: 'n1', interfaceName: '*', ...spec } }
}

function policy(name: string, namespace: string, labels: Readonly<Record<string, string>> = {}): object {
  return { apiVersion: V3, kind: 'NetworkPolicy', metadata: { name, namespace, labels }, spec: { order: 10, selector: 'all()' } }
}

async function spec(named: Named): Promise<unknown> {
  return (await client.get(named))['spec']
}

test('a cluster without our kinds says so, and version knows itself', async () => {
  const { code, stdout, stderr } = await shell('netplanectl get hep')
  expect({ code, stdout, stderr }).toEqual({
    code: 1,
    stdout: '',
    stderr: 'hostendpoints: the cluster does not know this kind: its definition is in deploy/\n',
  })
  expect(await ok('netplanectl version')).toBe(
    `Client Version:   v${packageVersion()}\nCluster Version:  unknown\nCluster Type:     unknown\nNodes run:        no agent has a pod\n`,
  )
})

describe('with our kinds', () => {
  beforeAll(async () => {
    for (const definition of allDefinitions(felixSchema())) await client.create(asApiObject(definition))
    for (const kind of [
      'HostEndpoint',
      'NetworkPolicy',
      'GlobalNetworkPolicy',
      'Tier',
      'IPPool',
      'ClusterInformation',
      'ControllersConfiguration',
      'FelixConfiguration',
      'NodeNetwork',
    ])
      await waitFor(() => client.list({ apiVersion: V3, kind }).catch(() => undefined), SOON)
    await waitFor(() => client.list({ apiVersion: 'operator.netplane.io/v1', kind: 'FlowUI' }).catch(() => undefined), SOON)
    await client.create(asApiObject({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }))
  })

  /** Nothing of ours is there. */
  beforeEach(async () => {
    for (const kind of [
      'HostEndpoint',
      'NetworkPolicy',
      'GlobalNetworkPolicy',
      'Tier',
      'IPPool',
      'ClusterInformation',
      'ControllersConfiguration',
      'FelixConfiguration',
    ])
      for (const { metadata } of await client.list({ apiVersion: V3, kind }))
        await client.delete({
          apiVersion: V3,
          kind,
          name: metadata.name,
          ...(metadata.namespace !== undefined && { namespace: metadata.namespace }),
        })
  })

  test('objects of files, directories and standard input are made, and shown', async () => {
    put(
      'set/a.yaml',
      host('h1', { expectedIPs: ['10.0.0.1', 'fd00::1'] }, { labels: { role: 'db' } }),
      policy('web', 'shop', { app: 'web' }),
    )
    put('set/b.json', { apiVersion: 'v1', kind: 'List', items: [host('h2', { node: 'n2' })] })
    put('set/below/c.yaml', host('h3'))
    expect(await ok('netplanectl apply -f set')).toBe('Successfully applied 3 resource(s)\n')
    expect(await ok('cat set/below/c.yaml | netplanectl apply -f -')).toBe("Successfully applied 1 'HostEndpoint' resource(s)\n")
    expect(await ok('netplanectl apply -R -f set')).toBe('Successfully applied 4 resource(s)\n')
    const table = 'NAME  NODE  INTERFACE  AGE\nh1    n1    *          AGE\nh2    n2    *          AGE\nh3    n1    *          AGE\n'
    for (const kind of ['hostendpoint', 'HostEndpoints', 'hep', 'HEPS', 'hostendpoints.netplane.io'])
      expect((await ok(`netplanectl get ${kind}`)).replaceAll(/\d+s$/gm, 'AGE')).toBe(table)
    expect(await ok('netplanectl get hep h1 -o wide')).toMatch(
      /^NAME +NODE +INTERFACE +IPS +PROFILES +AGE\nh1 +n1 +\* +10\.0\.0\.1,fd00::1 +- +\d+s\n$/,
    )
    expect(await ok('netplanectl get hep -l role=db -o name')).toBe('hostendpoint.netplane.io/h1\n')
    expect(await ok('netplanectl get hep -l "role!=db" -o name')).toBe('hostendpoint.netplane.io/h2\nhostendpoint.netplane.io/h3\n')
    expect(
      await ok(
        'netplanectl get hostendpoint.netplane.io/h1 hep/h2 -o custom-columns=N:.metadata.name,"ROLE:.metadata.labels.role,FIRST:{.spec.expectedIPs[0]},node"',
      ),
    ).toBe('N   ROLE  FIRST     NODE\nh1  db    10.0.0.1  n1\nh2  -     -         n2\n')
  })

  test('namespaced objects are shown of one namespace, or of all', async () => {
    put('p.yaml', policy('a', 'shop'), { ...policy('b', 'x'), metadata: { name: 'b' } })
    await ok('netplanectl create -f p.yaml')
    expect((await shell('netplanectl get networkpolicy')).stdout).toMatch(/^NAME +TIER +ORDER +SELECTOR +AGE\nb /)
    expect(await ok('netplanectl get np -n shop -o name')).toBe('networkpolicy.netplane.io/a\n')
    expect(await ok('netplanectl get policies -A -o custom-columns=NAMESPACE,NAME')).toBe('NAMESPACE  NAME\ndefault    b\nshop       a\n')
    expect(await ok('netplanectl get np -A')).toMatch(/^NAMESPACE +NAME +TIER/)
    const list: unknown = JSON.parse(await ok('netplanectl get np -A -o json'))
    expect(list).toMatchObject({ kind: 'List', items: [{ metadata: { name: 'b' } }, { metadata: { name: 'a', namespace: 'shop' } }] })
    expect(JSON.stringify(list)).not.toContain('managedFields')
    expect(await shell('netplanectl get np -n nowhere')).toMatchObject({ code: 0, stderr: 'No resources found\n' })
    expect(await shell('netplanectl get np a b -n shop -o name')).toEqual({
      code: 1,
      stdout: 'networkpolicy.netplane.io/a\n',
      stderr: 'NetworkPolicy shop/b: networkpolicies.netplane.io "b" not found\n',
    })
  })

  test('what get shows can be made again', async () => {
    put('h.yaml', host('h1', {}, { labels: { answer: 'yes', number: '012', power: '1e3' } }))
    await ok('netplanectl create -f h.yaml')
    await ok('netplanectl get hep h1 -o yaml --export > exported.yaml')
    expect(readFileSync(join(folder, 'exported.yaml'), 'utf8')).not.toMatch(/uid|resourceVersion|creationTimestamp|generation/)
    await ok('netplanectl get hep h1 -o yaml > whole.yaml')
    const { metadata } = await client.get({ ...HOST, name: 'h1' })
    await ok('netplanectl delete -f exported.yaml && netplanectl apply -f whole.yaml')
    const again = await client.get({ ...HOST, name: 'h1' })
    expect(again.metadata.labels).toEqual(metadata.labels)
    expect(again.metadata.uid).not.toBe(metadata.uid)
    expect(await ok('netplanectl get -f exported.yaml -o name')).toBe('hostendpoint.netplane.io/h1\n')
  })

  test('of files with errors nothing is written, and every error has file, line, field and reason', async () => {
    put(
      'wrong/a.yaml',
      `apiVersion: ${V3}\nkind: HostEndpoint\nmetadata:\n  name: good\nspec:\n  node: n1\n  interfaceName: eth0`,
      `apiVersion: ${V3}\nkind: NetworkPolicy\nmetadata:\n  name: shut\n  namespace: shop\nspec:\n  selector: all()\n  ingress:\n    - action: Alow`,
    )
    put(
      'wrong/b.yaml',
      `apiVersion: ${V3}\nkind: HostEndpoint\nmetadata:\n  name: h1\n  namespace: shop\nspec: {}`,
      `apiVersion: ${V3}\nkind: FelixConfiguration\nmetadata:\n  name: default\nspec:\n  vxlanPort: 4789\n  vxlanPrt: 4789`,
    )
    put('wrong/c.json', '{"kind": "Tier", "apiVersion": "netplane.io/v3", "metadata": {"name": "t"}, "spec": {\n"order": "first"}}')
    put(
      'wrong/d.yaml',
      'kind: ConfigMap\napiVersion: v1\nmetadata: {name: x}',
      'kind: HostEndpoint\napiVersion: netplane.io/v1\nmetadata: {name: x}',
    )
    put('wrong/e.yaml', 'kind: [')
    put('wrong/f.yaml', '# nothing')
    put(
      'wrong/g.yaml',
      `apiVersion: ${V3}\nkind: ControllersConfiguration\nmetadata:\n  name: default\nspec:\n  controllers:\n    node:\n      hostEndpoint:\n        autoCreate: Maybe`,
      `apiVersion: ${V3}\nkind: ClusterInformation\nmetadata:\n  name: other`,
    )
    const { code, stdout, stderr } = await shell('netplanectl apply -f wrong -f gone.yaml')
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
    expect(stderr.split('\n')).toEqual([
      'wrong/a.yaml:17: NetworkPolicy shop/shut: spec.ingress[0].action: must be Allow or Deny or Pass or Log',
      'wrong/b.yaml:5: HostEndpoint shop/h1: metadata.namespace: a HostEndpoint has none',
      'wrong/b.yaml:14: FelixConfiguration default: spec.vxlanPrt: there is no such field',
      'wrong/c.json:2: Tier t: spec.order: must be a number',
      'wrong/d.yaml:1: ConfigMap x: kind: there is no such kind of netplane.io/v3: ConfigMap of v1',
      'wrong/d.yaml:6: HostEndpoint x: apiVersion: must be netplane.io/v3',
      expect.stringMatching(/^wrong\/e\.yaml:\d+: is not valid YAML: /) as string,
      'wrong/f.yaml: has no objects (--skip-empty: it may be so)',
      'wrong/g.yaml:9: ControllersConfiguration default: spec.controllers.node.hostEndpoint.autoCreate: must be Enabled or Disabled',
      'wrong/g.yaml:14: ClusterInformation other: metadata.name: must be default',
      'gone.yaml: does not exist',
      'nothing was written',
      '',
    ])
    expect(await client.list(HOST)).toEqual([])
  })

  test('validate checks files without any cluster, and writes nothing', async () => {
    put('valid/a.yaml', host('h1'), policy('p', 'shop'))
    put('valid/below/b.yaml', host('h2'))
    const nowhere = { KUBECONFIG: join(folder, 'no-such-kubeconfig') }
    expect(await shell('netplanectl validate -f valid', nowhere)).toEqual({
      code: 0,
      stdout: 'Successfully validated 2 resource(s)\n',
      stderr: '',
    })
    expect(await ok('netplanectl validate -R -f valid')).toBe('Successfully validated 3 resource(s)\n')
    expect(await ok('netplanectl validate -f valid/below')).toBe("Successfully validated 1 'HostEndpoint' resource(s)\n")
    put('logs.yaml', { ...policy('l', 'shop'), spec: { ingress: [{ action: 'Log' }] } })
    expect(await shell('netplanectl validate -f logs.yaml', nowhere)).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('Log is not supported in eBPF mode') as string,
    })
    put('valid/c.yaml', { ...policy('q', 'shop'), spec: { ingress: [{ action: 'Alow' }] } })
    expect(await shell('netplanectl validate -f valid', nowhere)).toEqual({
      code: 1,
      stdout: '',
      stderr: 'valid/c.yaml:1: NetworkPolicy shop/q: spec.ingress[0].action: must be Allow or Deny or Pass or Log\n',
    })
    put('empty.yaml', '')
    expect((await shell('netplanectl validate -f empty.yaml', nowhere)).code).toBe(1)
    expect(await shell('netplanectl validate --skip-empty -f empty.yaml', nowhere)).toMatchObject({ code: 0 })
    expect(await client.list(HOST)).toEqual([])
  })

  test('a part that is not obeyed is a warning', async () => {
    put('log.yaml', { ...policy('l', 'shop'), spec: { ingress: [{ action: 'Log' }, { action: 'Allow' }] } })
    expect(await shell('netplanectl apply -f log.yaml')).toEqual({
      code: 0,
      stdout: "Successfully applied 1 'NetworkPolicy' resource(s)\n",
      stderr: 'log.yaml:1: NetworkPolicy shop/l: spec.ingress[0].action: Log is not supported in eBPF mode: the rule is left out\n',
    })
  })

  test('what is there already, or is not, is no error with a flag', async () => {
    put('one.yaml', host('h1'))
    put('two.yaml', host('h1'), host('h2'))
    await ok('netplanectl create -f one.yaml')
    expect(await shell('netplanectl create -f two.yaml')).toEqual({
      code: 1,
      stdout: 'Partial success: created 1 out of 2 resources\n',
      stderr: 'HostEndpoint h1: hostendpoints.netplane.io "h1" already exists\n',
    })
    expect(await ok('netplanectl create --skip-exists -f two.yaml')).toContain('Skipped: HostEndpoint h1 is there already\n')
    expect(await shell('netplanectl delete hep h2 h3')).toEqual({
      code: 1,
      stdout: 'Partial success: deleted 1 out of 2 resources\n',
      stderr: 'HostEndpoint h3: hostendpoints.netplane.io "h3" not found\n',
    })
    expect(await ok('netplanectl delete -s -f two.yaml')).toBe(
      "Skipped: HostEndpoint h2 is not there\nSuccessfully deleted 1 'HostEndpoint' resource(s)\n",
    )
    put('none.yaml', '')
    expect(await ok('netplanectl apply --skip-empty -f none.yaml')).toBe('No resources specified\n')
  })

  test('apply replaces the spec and leaves others’ labels, replace replaces both and needs the object', async () => {
    const owner = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u' }
    await client.create(
      asApiObject(host('h1', { expectedIPs: ['10.0.0.1'] }, { labels: { theirs: 'a', both: 'b' }, ownerReferences: [owner] })),
    )
    put('h.yaml', host('h1', { node: 'n2' }, { labels: { both: 'c' } }))
    await ok('netplanectl apply -f h.yaml')
    const applied = await client.get({ ...HOST, name: 'h1' })
    expect(applied['spec']).toEqual({ node: 'n2', interfaceName: '*' })
    expect(applied.metadata).toMatchObject({ labels: { theirs: 'a', both: 'c' }, ownerReferences: [owner] })
    expect(JSON.stringify(applied.metadata['managedFields'])).toContain('"manager":"netplanectl"')
    await ok('netplanectl replace -f h.yaml')
    expect((await client.get({ ...HOST, name: 'h1' })).metadata.labels).toEqual({ both: 'c' })
    put('other.yaml', host('h9'))
    expect(await shell('netplanectl replace -f other.yaml')).toMatchObject({
      code: 1,
      stderr: 'HostEndpoint h9: hostendpoints.netplane.io "h9" not found\n',
    })
    put('old.yaml', host('h1', {}, { resourceVersion: applied.metadata.resourceVersion }))
    expect((await shell('netplanectl apply -f old.yaml')).stderr).toContain('the object has been modified')
  })

  test('what the server refuses is shown with its reason', async () => {
    await client.create(asApiObject({ apiVersion: V3, kind: 'IPPool', metadata: { name: 'p' }, spec: { cidr: '10.1.0.0/16' } }))
    put('pool.yaml', { apiVersion: V3, kind: 'IPPool', metadata: { name: 'p' }, spec: { cidr: '10.2.0.0/16' } }, host('h1'))
    const { code, stdout, stderr } = await shell('netplanectl apply -f pool.yaml')
    expect({ code, stdout }).toEqual({ code: 1, stdout: 'Partial success: applied 1 out of 2 resources\n' })
    expect(stderr).toMatch(/^IPPool p: IPPool\.netplane\.io "p" is invalid: spec\.cidr: .*cannot be changed\n$/)
  })

  test('a part is changed by a merge or by operations', async () => {
    await client.create(asApiObject(host('h1')))
    expect(await ok(`netplanectl patch hep h1 -p '{"spec": {"node": "n2"}}'`)).toBe("Successfully patched 1 'HostEndpoint' resource(s)\n")
    await ok(`netplanectl patch hep/h1 --type json -p '[{"op": "add", "path": "/spec/expectedIPs", "value": ["10.0.0.9"]}]'`)
    await ok(`netplanectl patch hep h1 -t strategic -p 'spec: {interfaceName: eth1}'`)
    expect(await spec({ ...HOST, name: 'h1' })).toEqual({ node: 'n2', interfaceName: 'eth1', expectedIPs: ['10.0.0.9'] })
    const { code, stderr } = await shell(`netplanectl patch hep h1 -p '{"spec": {"nodde": "n3"}}'`)
    expect(code).toBe(1)
    expect(stderr).toMatch(/^HostEndpoint h1: .*unknown field "spec\.nodde"/)
  })

  test('labels are set, changed by a flag, and taken away', async () => {
    await client.create(asApiObject(host('h1', {}, { labels: { a: '1' } })))
    const labels = async (): Promise<unknown> => (await client.get({ ...HOST, name: 'h1' })).metadata.labels
    expect(await ok('netplanectl label hep h1 b=2')).toBe('Successfully set label b on HostEndpoint h1\n')
    expect(await shell('netplanectl label hep h1 a=2 c=3')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'HostEndpoint h1: label a has another value: use --overwrite\n',
    })
    expect(await labels()).toEqual({ a: '1', b: '2' })
    expect(await ok('netplanectl label hostendpoints h1 a=2 b- --overwrite')).toBe(
      'Successfully updated label a on HostEndpoint h1\nSuccessfully removed label b from HostEndpoint h1\n',
    )
    expect(await ok('netplanectl label hep h1 a --remove')).toContain('removed label a')
    expect(await labels()).toBeUndefined()
    expect((await shell('netplanectl label hep h1 "a b=c"')).stderr).toMatch(/^HostEndpoint h1: .*metadata\.labels/)
  })

  test('the way to automatic host endpoints, as it is written down', async () => {
    await client.create(
      asApiObject({ apiVersion: V3, kind: 'ControllersConfiguration', metadata: { name: 'default' }, spec: { logSeverityScreen: 'Info' } }),
    )
    await client.create(asApiObject(host('old-endpoint')))
    await ok(
      `netplanectl patch kubecontrollersconfiguration default --patch='{"spec":{"controllers":{"node":{"hostEndpoint":{"autoCreate":"Enabled"}}}}}'`,
    )
    expect(await spec({ apiVersion: V3, kind: 'ControllersConfiguration', name: 'default' })).toEqual({
      logSeverityScreen: 'Info',
      controllers: { node: { hostEndpoint: { autoCreate: 'Enabled' } } },
    })
    expect(await ok('netplanectl delete hostendpoint old-endpoint')).toBe("Successfully deleted 1 'HostEndpoint' resource(s)\n")
    expect(await client.list(HOST)).toEqual([])
    const { code, stderr } = await shell('netplanectl label node n1 a=b')
    expect(code).toBe(2)
    expect(stderr).toMatch(/"node" is none: networkpolicies \(policy, pol, np\), .*; a node is an object of Kubernetes/)
  })

  describe('a cluster of a version', () => {
    const inform = (netplaneVersion: string, datastoreReady = true): Promise<ApiObject> =>
      client.create(
        asApiObject({
          ...CLUSTER_INFORMATION,
          metadata: { name: 'default' },
          spec: { netplaneVersion, datastoreReady, clusterType: 'k8s,eks' },
        }),
      )
    const [major, minor, patch] = packageVersion().split('.').map(Number)

    test.each([-1, 1])('of another minor (%i) is not written to', async (step) => {
      const theirs = `v${major}.${Number(minor) + step}.0`
      await inform(theirs)
      put('h.yaml', host('h1'))
      for (const line of [
        'apply -f h.yaml',
        'create -f h.yaml',
        'replace -f h.yaml',
        'delete hep h1',
        `patch hep h1 -p '{}'`,
        'label hep h1 a=b',
      ])
        expect(await shell(`netplanectl ${line}`)).toEqual({
          code: 1,
          stdout: '',
          stderr: `netplanectl: version mismatch: netplanectl is v${packageVersion()}, the cluster ${theirs}. Take the cluster's netplanectl. Use --allow-version-mismatch to override\n`,
        })
      expect(await client.list(HOST)).toEqual([])
      expect(await shell('netplanectl get hep')).toMatchObject({
        code: step > 0 ? 1 : 0,
        stderr: expect.stringMatching(step > 0 ? /^netplanectl: version mismatch: / : /^versions differ: /) as string,
      })
      await ok('netplanectl apply -f h.yaml --allow-version-mismatch')
      await ok('netplanectl get hep --allow-version-mismatch')
      if (step < 0) return
      for (const line of ['install check', 'install remove', 'install dns', 'install endpoint', 'migrate host-endpoints'])
        expect(await shell(`netplanectl ${line}`)).toMatchObject({
          code: 1,
          stdout: '',
          stderr: expect.stringMatching(/^netplanectl: version mismatch: .*\n$/) as string,
        })
      expect((await shell('netplanectl migrate host-endpoints --allow-version-mismatch')).stdout).toContain('nothing was written')
    })

    test('of another patch is, with a warning', async () => {
      await inform(`v${major}.${minor}.${Number(patch) + 1}-rc1`)
      put('h.yaml', host('h1'))
      expect(await shell('netplanectl apply -f h.yaml')).toEqual({
        code: 0,
        stdout: "Successfully applied 1 'HostEndpoint' resource(s)\n",
        stderr: `versions differ: netplanectl is v${packageVersion()}, the cluster v${major}.${minor}.${Number(patch) + 1}\n`,
      })
    })

    test('that is locked is not written to, but for the lock', async () => {
      await inform(`v${packageVersion()}`, false)
      put('h.yaml', host('h1'))
      const refusal = /^netplanectl: the datastore is locked: datastoreReady of ClusterInformation default is false/
      for (const line of [
        'apply -f h.yaml',
        'create -f h.yaml',
        'delete hep h1',
        `patch hep h1 -p '{}'`,
        'label hep h1 a=b',
        'apply -f h.yaml --allow-version-mismatch',
      ])
        expect(await shell(`netplanectl ${line}`)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(refusal) as string })
      expect(await client.list(HOST)).toEqual([])
      expect(await ok('netplanectl version')).toContain('Datastore:        locked\n')
      await ok(`netplanectl patch clusterinfo default -p '{"spec": {"datastoreReady": true}}'`)
      await ok('netplanectl apply -f h.yaml')
    })

    test('says it, its type, and what its nodes run', async () => {
      await inform('v3.31.5')
      for (const [at, image] of [
        'r.example:5000/netplane:3.31.5',
        'netplane:v3.31.5',
        'netplane:3.31.4@sha256:00',
        'netplane@sha256:11',
      ].entries())
        await client.create(pod(`netplane-node-${at}`, { image }))
      expect(await ok('netplanectl version')).toBe(
        [
          `Client Version:   v${packageVersion()}`,
          'Cluster Version:  v3.31.5',
          'Cluster Type:     k8s,eks',
          'Nodes run:        v3.31.5 on 2 of 4 nodes',
          '                  netplane@sha256:11 on 1 of 4 nodes',
          '                  v3.31.4 on 1 of 4 nodes',
          '',
        ].join('\n'),
      )
      expect(JSON.parse(await ok('netplanectl version --json'))).toMatchObject({
        cluster: 'v3.31.5',
        nodes: [{ version: 'v3.31.5', nodes: 2 }, {}, {}],
      })
    })
  })

  test('flags go before the environment, which goes before the configuration file; each setting has its source', async () => {
    const kubeconfig = cluster.kubeconfig()
    const [bad, config] = [join(folder, 'bad'), join(folder, 'ctl.cfg')]
    writeFileSync(bad, '{}')
    const write = (spec: object): void => writeFileSync(config, JSON.stringify({ apiVersion: V3, kind: 'NetplaneAPIConfig', spec }))
    write({ datastoreType: 'kubernetes', kubeconfig })
    const shown = async (line: string, env: Readonly<Record<string, string>>): Promise<readonly string[]> => {
      const { stdout } = await shell(`netplanectl version --settings ${line}`, env)
      return [...stdout.matchAll(/^(?:kubeconfig|context) .*$/gm)].map(([one]) => one.replaceAll(/ +/g, ' '))
    }
    const none = 'context - none: the current one'
    expect(await shown('', {})).toEqual(['kubeconfig - none: the account of a pod', none])
    expect(await shown(`-c ${config}`, {})).toEqual([`kubeconfig ${kubeconfig} ${config}`, none])
    expect(await shown(`-c ${config} --context y`, { KUBECONFIG: bad })).toEqual([`kubeconfig ${bad} KUBECONFIG`, 'context y --context'])
    expect(await shown(`-c ${config} --kubeconfig ${kubeconfig}`, { KUBECONFIG: bad, K8S_CURRENT_CONTEXT: 'x' })).toEqual([
      `kubeconfig ${kubeconfig} --kubeconfig`,
      'context x K8S_CURRENT_CONTEXT',
    ])
    expect(await shell(`netplanectl get hep -c ${config}`, {})).toMatchObject({ code: 0 })
    expect(await shell('netplanectl get hep --context y')).toMatchObject({
      code: 1,
      stderr: 'netplanectl: kubeconfig: contexts: there is no "y"\n',
    })
    expect((await shell('netplanectl get hep', {})).stderr).toMatch(/^netplanectl: --kubeconfig: nothing says how the cluster is reached/)
    write({ etcdEndpoints: 'https://e:2379' })
    expect((await shell(`netplanectl get hep -c ${config}`)).stderr).toBe(
      `netplanectl: ${config}:1: spec.etcdEndpoints: is not taken: this version reaches the cluster by its API server alone\n`,
    )
    expect((await shell('netplanectl get hep -c nothing.cfg')).stderr).toBe('netplanectl: nothing.cfg: does not exist\n')
  })

  test('an account without the rights is told so', async () => {
    const account = await client.create(
      asApiObject({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: 'default', name: 'guest' } }),
    )
    const env = { KUBECONFIG: cluster.kubeconfig({ token: tokenFor(account, join(folder, 'accounts.key'), 600) }) }
    put('h.yaml', host('h1'))
    expect(await shell('netplanectl get gnp', env)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('cannot list resource "globalnetworkpolicies"') as string,
    })
    expect(await shell('netplanectl apply -f h.yaml', env)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('clusterinformations') as string,
    })
    const refused = await shell('netplanectl version', env)
    expect(refused).toMatchObject({ code: 1, stdout: expect.stringContaining('Cluster Version:  unknown\n') as string })
    expect(refused.stderr.split('\n')).toEqual([
      expect.stringContaining('clusterinformations') as string,
      expect.stringContaining('cannot list resource "pods"') as string,
      '',
    ])
  })

  test('a cluster that does not answer has no version, and takes no verb', async () => {
    put('gone.json', {
      clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
      contexts: [{ name: 'x', context: { cluster: 'c' } }],
      'current-context': 'x',
    })
    const env = { KUBECONFIG: 'gone.json' }
    const said = /^[^\n]*127\.0\.0\.1 port 1: [^\n]*ECONNREFUSED[^\n]*\n$/
    expect(await shell('netplanectl version', env)).toEqual({
      code: 0,
      stdout: `Client Version:   v${packageVersion()}\nCluster Version:  unknown\nCluster Type:     unknown\nNodes run:        unknown\n`,
      stderr: expect.stringMatching(said) as string,
    })
    put('h.yaml', host('h1'))
    for (const line of ['get hep', 'apply -f h.yaml', 'bundle'])
      expect(await shell(`netplanectl ${line}`, env)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(said) as string })
  })

  test('a bundle has the cluster in it, and no secret', async () => {
    const logs = new Map([
      [
        'netplane-system/netplane-node-x/netplane-node',
        `2026-11-26T00:00:00Z {"event":"agent.started"}\n2026-11-26T00:00:01Z Authorization: Bearer ${JWT}\n`,
      ],
      ['netplane-system/netplane-node-x/netplane-node before', '2026-11-25T00:00:00Z it ended here\n'],
    ])
    await using kubelet = await startKubelet(client, { node: 'n1', authority: cluster.users, logs })
    await client.create(asApiObject({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'netplane-system' } }))
    await client.create(
      asApiObject({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { namespace: 'netplane-system', name: 'pull' },
        stringData: { auth: 'hunter22' },
      }),
    )
    const made = await client.create(pod('netplane-node-x', { namespace: 'netplane-system', image: 'netplane:3.31.5', node: 'n1' }))
    const containerStatuses = [{ name: NODE, restartCount: 2, ready: true, image: 'i', imageID: '', state: { running: {} } }]
    await client.update({ ...made, status: { containerStatuses } }, { subresource: 'status' })
    await client.create(asApiObject(host('h1', {}, { annotations: { note: `token: ${JWT}` } })))
    await client.create(
      asApiObject({
        apiVersion: 'operator.netplane.io/v1',
        kind: 'Installation',
        metadata: { name: 'default' },
        spec: { imagePullSecrets: [{ name: 'pull' }] },
      }),
    )
    const event = { namespace: 'netplane-system', name: 'e1' }
    const about = { kind: 'Pod', namespace: 'netplane-system', name: 'netplane-node-x' }
    await client.create(
      asApiObject({
        apiVersion: 'v1',
        kind: 'Event',
        metadata: event,
        involvedObject: about,
        reason: 'Failed',
        message: `password=hunter22 ${JWT}`,
      }),
    )
    const foreign = { kind: 'Pod', namespace: 'shop', name: 'x' }
    await client.create(
      asApiObject({
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { namespace: 'shop', name: 'e2' },
        involvedObject: foreign,
        reason: 'NotOurs',
        message: '',
      }),
    )

    expect(await ok('netplanectl bundle --output b.tar.gz')).toMatch(
      /^b\.tar\.gz: \d+ parts, \d+ bytes; \d+ could not be read \(README\.txt says why\)\n$/,
    )
    expect(statSync(join(folder, 'b.tar.gz')).mode & 0o777).toBe(0o600)
    const tar = (...args: string[]): string =>
      execFileSync('tar', ['-xOzf', join(folder, 'b.tar.gz'), ...args.map((one) => `netplane-bundle/${one}`)], { encoding: 'utf8' })
    const all = tar()
    expect(all).not.toMatch(/hunter22|c2lnbmF0|eyJ/)
    expect(all).toContain('[left out]')
    const names = (file: string): unknown => (JSON.parse(tar(file)) as ApiObject[]).map(({ metadata }) => metadata.name)
    expect(names('netplane.io/hostendpoints.json')).toEqual(['h1'])
    expect(names('operator.netplane.io/installations.json')).toEqual(['default'])
    expect(names('workloads/pods.json')).toContain('netplane-node-x')
    expect(names('workloads/events.json')).toEqual(['e1'])
    expect(names('cluster/nodes.json')).toEqual(['n1'])
    expect(JSON.parse(tar('cluster/version.json'))).toMatchObject({ client: `v${packageVersion()}` })
    const log = `log/netplane-system/netplane-node-x/${NODE}`
    expect(tar(`${log}.txt`)).toContain('agent.started')
    expect(tar(`${log}.previous.txt`)).toContain('it ended here')
    expect(kubelet.asked.find((url) => url.includes(`netplane-node-x/${NODE}`))).toMatch(
      /limitBytes=\d+.*sinceSeconds=86400.*tailLines=5000/,
    )
    // a container whose log cannot be had
    expect(tar('README.txt')).toMatch(/log\/netplane-system\/netplane-node-x\/mounts\.txt .* -- not read: /)
  })
})

/** Of the agents: an init container, variables and flags with secrets. */
function pod(
  name: string,
  { namespace = 'default', image, node }: { readonly namespace?: string; readonly image: string; readonly node?: string },
): ApiObject {
  return asApiObject({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace, labels: labelsOf(NODE) },
    spec: {
      ...(node !== undefined && { nodeName: node }),
      initContainers: [{ name: 'mounts', image }],
      containers: [
        { name: NODE, image, command: ['agent', '--api-token', 'hunter22'], env: [{ name: 'REGISTRY_PASSWORD', value: 'hunter22' }] },
      ],
    },
  })
}
