// SPDX-License-Identifier: Apache-2.0
/** Each group of probes can look with what its container has, and no more: capabilities as a runtime gives them.
 * Layer: test. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { BpfProgram } from '#native'
import { installationSpec } from '#lib/kube/schema/installation.ts'
import { PROBE_GROUPS } from '#lib/preflight/findings.ts'
import { readReport } from '#lib/preflight/report.ts'
import { computeInstallation } from '#lib/render/computed.ts'
import { renderPreflight } from '#lib/render/preflight-pod.ts'
import { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { PASS, SCHED_CLS } from '../dataplane/attach-cases.ts'
import { codes } from './look.ts'
import { programCommand } from '../../../testkit/base/program.ts'

interface Container {
  readonly name: string
  readonly command: readonly string[]
  readonly args: readonly string[]
  readonly securityContext: {
    readonly allowPrivilegeEscalation: boolean
    readonly capabilities: { readonly add?: readonly string[] }
  }
}

let node: ScratchNode

beforeAll(async () => {
  node = await ScratchNode.make()
  node.sh(`
    ip link add eth0 type veth peer name wire0
    ip addr add 192.0.2.1/24 dev eth0
    ip link set eth0 up
    ip link set wire0 up
    iptables-nft -t nat -N KUBE-SERVICES; iptables-nft -t nat -A PREROUTING -j KUBE-SERVICES`)
  const program = BpfProgram.load({ type: SCHED_CLS, instructions: PASS, license: 'GPL' })
  program.pin(node.path('sys/fs/bpf/others'))
  program.close()
  node.sh('tc qdisc add dev eth0 clsact; tc filter add dev eth0 ingress pref 9 bpf da pinned /sys/fs/bpf/others')
})

afterAll(async () => {
  await node[Symbol.asyncDispose]()
})

const computed = computeInstallation(installationSpec.read({}), { provider: 'Generic', hasKubeProxy: false, installed: undefined })
const objects = renderPreflight({
  namespace: 'netplane-system',
  image: 'netplane',
  computed,
  endpoint: { host: '127.0.0.1', port: '1' },
  serviceAddresses: ['10.96.0.1'],
  peers: [{ name: 'n1', addresses: ['192.0.2.1'] }],
  vxlanPort: undefined,
  run: '1',
})

function containerOf(group: string): Container {
  const set = objects.find(({ kind }) => kind === 'DaemonSet')?.['spec'] as {
    readonly template: { readonly spec: { readonly initContainers: readonly Container[] } }
  }
  const found = set.template.spec.initContainers.find(({ name }) => name === group)
  if (found === undefined) throw new Error(group)
  return found
}

/** The container's command on this node, with what is mounted elsewhere in a container where the node has it. */
function commandOf({ name, command, args: given, securityContext }: Container, log: string): string {
  const args = [...given]
  const peers = join(node.folder, 'peers')
  writeFileSync(peers, 'n1 192.0.2.1\n')
  const places: Readonly<Record<string, string>> = {
    '/dev/termination-log': log,
    '/host/sys/fs': '/sys/fs',
    '/host/root': '/',
    '/etc/netplane-preflight/peers': peers,
    '$(NODE_NAME)': 'n1',
    '$(NODE_ADDRESSES)': '192.0.2.1',
  }
  const account = join(node.folder, 'account')
  mkdirSync(account, { recursive: true })
  writeFileSync(join(account, 'token'), 't')
  writeFileSync(join(account, 'ca.crt'), rootCertificates[0] ?? '')
  if (name === 'endpoint') args.push(`--account=${account}`)
  const placed = [...command.slice(1), ...args].map((word) =>
    Object.entries(places).reduce((text, [from, to]) => text.replace(from, to), word),
  )
  const capabilities = ['-all', ...(securityContext.capabilities.add ?? []).map((name) => `+${name.toLowerCase()}`)].join()
  const limited = ['setpriv', `--bounding-set=${capabilities}`, `--inh-caps=${capabilities}`]
  if (!securityContext.allowPrivilegeEscalation) limited.push('--no-new-privs')
  return [...limited, ...programCommand('agent'), ...placed].join(' ')
}

const FOUND: Readonly<Record<(typeof PROBE_GROUPS)[number], readonly (string | RegExp)[]>> = {
  kernel: [],
  devices: [],
  others: [/^foreign-program eth0\/ingress number \d+$/],
  endpoint: ['endpoint-refused 127.0.0.1:1'],
  vxlan: [],
}

test.each(PROBE_GROUPS)('%s', (group) => {
  const log = join(node.folder, group)
  node.sh(commandOf(containerOf(group), log))
  const report = readReport(readFileSync(log, 'utf8'))
  expect(codes(report)).toEqual(FOUND[group].map((one) => (typeof one === 'string' ? one : (expect.stringMatching(one) as string))))
  if (group === 'others') expect(report.facts).toEqual({ proxy: 'iptables' })
})

test('an account that is not mounted is no fault of the endpoint', () => {
  const log = join(node.folder, 'log')
  const looked = node.command('preflight', '--group=endpoint', '--endpoint=127.0.0.1:1', '--account=/nowhere', `--termination-log=${log}`)
  expect(looked.status).toBe(2)
  expect(readFileSync(log, 'utf8')).toContain("endpoint: ENOENT: no such file or directory, open '/nowhere/")
})
