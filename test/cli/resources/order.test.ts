// SPDX-License-Identifier: Apache-2.0
/** Command lines of the verbs. Layer: test. */
import { describe, expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { readArgs } from '../../../cli/args.ts'
import { ALL_RESOURCES, resourceOf, V3_RESOURCES } from '../../../cli/resources/kinds.ts'

function kindOf(word: string): string {
  return resourceOf(word, V3_RESOURCES).kind
}

describe('kinds', () => {
  test.each([
    ['HostEndpoint', 'hostendpoint hostendpoints HostEndpoints hep HEP heps hostendpoint.netplane.io hostendpoints.v3.netplane.io'],
    ['NetworkPolicy', 'networkpolicy networkpolicies policy policies np nps pol'],
    ['GlobalNetworkPolicy', 'gnp gnps globalnetworkpolicies'],
    ['NetworkSet', 'netset netsets networksets'],
    ['GlobalNetworkSet', 'gns gnetsets globalnetworkset'],
    ['IPPool', 'ippool ippools pool pools ipp'],
    ['FelixConfiguration', 'felixconfig felixconfigs felixconfiguration felixconfigurations'],
    [
      'ControllersConfiguration',
      'controllersconfiguration kubecontrollersconfiguration kubecontrollersconfigurations kubecontrollersconfig',
    ],
    ['ClusterInformation', 'clusterinfo clusterinformations'],
    ['Profile', 'pro profiles'],
  ])('%s is typed as %s', (kind, words) => {
    expect(words.split(' ').map(kindOf)).toEqual(words.split(' ').map(() => kind))
  })

  test('no two kinds have a name in common', () => {
    const names = ALL_RESOURCES.flatMap(({ kind, plural, short, aliases }) => [
      ...new Set([kind.toLowerCase(), plural]),
      ...short,
      ...aliases,
    ])
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  })

  test.each([
    ['pods', /^kind: "pods" is none: networkpolicies \(policy, pol, np\), .*clusterinformations \(clusterinfo\)$/],
    ['no', /a node is an object of Kubernetes: kubectl has the same verbs for it$/],
    ['installation', /Installation is of operator\.netplane\.io\/v1: kubectl has the same verbs for it$/],
    ['hostendpoints.example.com', /is none/],
  ])('"%s" is none, and those there are are told', (word, reason) => {
    expect(() => kindOf(word)).toThrow(reason)
  })
})

describe('command lines', () => {
  test('get', () => {
    expect(readArgs('get gnp -l a=b -A -o wide --kubeconfig k -c f --context x'.split(' '))).toMatchObject({
      kind: 'get',
      connection: { kubeconfig: 'k', config: 'f', context: 'x' },
      choice: { by: 'kind', resource: { kind: 'GlobalNetworkPolicy' }, selector: 'a=b', allNamespaces: true },
      format: { kind: 'table', wide: true },
      namespace: 'default',
    })
    expect(readArgs('get netset a b -n=shop -o=yaml --export'.split(' '))).toMatchObject({
      choice: { by: 'name', targets: [{ name: 'a' }, { name: 'b', resource: { kind: 'NetworkSet' } }] },
      format: { kind: 'yaml' },
      namespace: 'shop',
      isExport: true,
    })
    expect(readArgs(['get', 'hep/a', 'gnp/b'])).toMatchObject({
      choice: {
        targets: [
          { resource: { kind: 'HostEndpoint' }, name: 'a' },
          { resource: { kind: 'GlobalNetworkPolicy' }, name: 'b' },
        ],
      },
    })
  })

  test('verbs of files', () => {
    expect(readArgs('apply -f a -f - -R --skip-empty --allow-version-mismatch'.split(' '))).toMatchObject({
      kind: 'apply',
      files: { paths: ['a', '-'], recursive: true, skipEmpty: true },
      allowMismatch: true,
    })
    expect(readArgs('create --filename=a --skip-exists -n x'.split(' '))).toMatchObject({ skipExists: true, namespace: 'x' })
    expect(readArgs('validate -f a -R --skip-empty -n x'.split(' '))).toEqual({
      kind: 'validate',
      files: { paths: ['a'], recursive: true, skipEmpty: true },
      namespace: 'x',
    })
    expect(readArgs('delete -f a -s'.split(' '))).toMatchObject({ choice: { by: 'file' }, skipNotExists: true })
    expect(readArgs('delete hostendpoint old'.split(' '))).toMatchObject({ choice: { by: 'name', targets: [{ name: 'old' }] } })
  })

  test('patch and label', () => {
    expect(readArgs(['patch', 'gnp', 'a', '-p', '{"spec":{"order":5}}'])).toMatchObject({ type: 'merge', patch: { spec: { order: 5 } } })
    expect(readArgs(['patch', 'gnp/a', '-t', 'json', '--patch', '[{"op":"remove","path":"/spec/order"}]'])).toMatchObject({ type: 'json' })
    const labels = (line: string): unknown => {
      const order = readArgs(line.split(' '))
      return order.kind === 'label' ? Object.fromEntries(order.labels) : undefined
    }
    expect(labels('label hep h a=1 b= c.d/e=f=g x-')).toEqual({ a: '1', b: '', 'c.d/e': 'f=g', x: null })
    expect(labels('label hep h a b --remove')).toEqual({ a: null, b: null })
  })

  test('ipam', () => {
    const what = (line: string): unknown => {
      const order = readArgs(line.split(' '))
      return order.kind === 'ipam show' ? order.what : undefined
    }
    expect(what('ipam show')).toBe('pools')
    expect(what('ipam show --show-blocks')).toBe('blocks')
    expect(what('ipam show --show-borrowed')).toBe('borrowed')
    expect(what('ipam show --show-configuration')).toBe('configuration')
    expect(what('ipam show --ip 10.0.0.1')).toEqual({ addr: parseAddr('10.0.0.1') })
    expect(readArgs('ipam check --show-all-ips --show-problem-ips -o r.json'.split(' '))).toMatchObject({
      kind: 'ipam check',
      showAll: true,
      showProblems: true,
      output: 'r.json',
    })
    expect(readArgs('ipam release --ip 10.0.0.1 --ip fd00::1 --force'.split(' '))).toMatchObject({
      chosen: { by: 'address', addrs: [parseAddr('10.0.0.1'), parseAddr('fd00::1')] },
      force: true,
      allowMismatch: false,
    })
    expect(readArgs('ipam release --from-report=a --from-report=b'.split(' '))).toMatchObject({
      chosen: { by: 'report', paths: ['a', 'b'] },
      force: false,
    })
  })

  test('version and bundle', () => {
    expect(readArgs(['version', '--client'])).toMatchObject({ kind: 'version', client: true, settings: false, json: false })
    expect(readArgs(['bundle'])).toMatchObject({ kind: 'bundle', output: undefined, sinceSeconds: 86_400, maxLogs: 50 })
    expect(readArgs('bundle --since 2d --max-logs 3 --output -'.split(' '))).toMatchObject({
      sinceSeconds: 172_800,
      maxLogs: 3,
      output: '-',
    })
  })

  test.each([
    ['get', 'get: needs KIND, or -f FILE'],
    ['get hep a -A', 'neither -l nor -A'],
    ['get hep/a b', '"b" is no KIND/NAME'],
    ['get hep -f x', '"hep" is too much beside -f'],
    ['get hep --export', '--export: needs names'],
    ['get hep -o xml', '"xml" is none of wide'],
    ['get hep -o custom-columns=A:.x[', 'is none at "["'],
    ['get hep -o custom-columns=', 'needs HEADING:PATH'],
    ['apply', 'apply: needs -f FILE'],
    ['validate', 'validate: needs -f FILE'],
    ['validate -f a --allow-version-mismatch', "Unknown option '--allow-version-mismatch'"],
    ['apply x', "Unexpected argument 'x'"],
    ['delete hep', 'delete: needs names'],
    ['delete installation default', 'Installation is of operator.netplane.io/v1'],
    ['patch hep a', 'patch: needs --patch'],
    ['patch hep -p {}', 'patch: needs KIND NAME'],
    ['patch hep a b -p {}', '"b" is too much'],
    ['patch hep a -p []', 'must be an object'],
    ['patch hep a -p {', 'is neither JSON nor YAML'],
    ['patch hep a -t json -p {}', 'must be a list'],
    ['patch hep a -t apply -p {}', '"apply" is none of merge'],
    ['label hep a', 'label: needs KEY=VALUE'],
    ['label hep a b', '"b" is no KEY=VALUE or KEY-'],
    ['label hep a =b', '"=b" is no KEY=VALUE'],
    ['label hep a b=c --remove', '"b=c" is no KEY'],
    ['ipam', '"ipam" is none'],
    ['ipam split', '"ipam split" is none'],
    ['ipam show --ip x', '"x" is no IP address'],
    ['ipam show --ip 10.0.0.1 --show-blocks', 'one of --ip, --show-blocks'],
    ['ipam release', 'needs either --ip or --from-report'],
    ['ipam release --ip 10.0.0.1 --from-report r', 'needs either --ip or --from-report'],
    ['bundle --since 1w', '"1w" is no time'],
    ['bundle --max-logs few', '"few" is no number'],
  ])('"%s" is refused: %s', (line, reason) => {
    expect(() => readArgs(line.split(' '))).toThrow(reason)
  })
})
