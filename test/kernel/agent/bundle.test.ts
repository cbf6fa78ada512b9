// SPDX-License-Identifier: Apache-2.0
/** netplanectl node bundle on a node with an agent, after its death, and on one that never had any. Layer: test. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ScratchNode, type AgentProcess } from '../../../testkit/base/scratch-node.ts'
import { felix, node as nodeObject, pod, slice } from './manifests.ts'
import { programCommand } from '../../../testkit/base/program.ts'

const CTL = programCommand('cli').join(' ')
const TOKEN = 'eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl'

let node: ScratchNode
let agent: AgentProcess
let folder = ''

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-bundle-'))
  node = await ScratchNode.make()
  node.sh('ip link add eth0 type veth peer name wire0; ip link set eth0 up; ip link set wire0 up; ip addr add 192.0.2.1/24 dev eth0')
  node.put('cluster.json', [nodeObject('n1', '192.0.2.1', '10.1.0.0/24'), pod('web-1', '10.1.0.5'), slice('10.1.0.5')])
  node.put('felix.json', [felix(node.cgroup)])
  node.sh(`mkdir -p ${node.state}/mounted; mount -t tmpfs none ${node.state}/mounted; touch ${node.state}/mounted/inside`)
  agent = node.agent('--health-port', '9099')
  await agent.event('dataplane.ready')
  // secrets that an administrator might have left there
  writeFileSync(join(node.state, 'sysctls.json'), JSON.stringify({ note: `token: ${TOKEN}`, 'client-key-data': 'hunter22' }))
  writeFileSync(join(folder, 'agent.log'), `${agent.lines.map((line) => JSON.stringify(line)).join('\n')}\n{"error":"Bearer ${TOKEN}"}\n`)
})

afterAll(async () => {
  await node[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

interface Bundle {
  readonly names: readonly string[]
  readonly readme: string
  readonly read: (name: string) => string
  /** all of it */
  readonly text: string
}

function bundle(flags = ''): Bundle {
  const file = join(folder, 'bundle.tar.gz')
  rmSync(file, { force: true })
  const said = node.sh(`${CTL} node bundle --output ${file} --state-dir ${node.state} --log ${join(folder, 'agent.log')} ${flags}`)
  expect(said).toContain(`${file}: `)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  const tar = (...args: string[]): string => execFileSync('tar', ['-xOzf', file, ...args], { encoding: 'utf8', maxBuffer: 1 << 28 })
  const paths = execFileSync('tar', ['-tzf', file], { encoding: 'utf8' }).trim().split('\n')
  const read = (name: string): string => tar(paths.find((path) => path.endsWith(`/${name}`)) ?? name)
  return { names: paths.map((path) => path.replace(/^[^/]*\//, '')), readme: read('README.txt'), read, text: tar() }
}

const ALWAYS = [
  'README.txt',
  'node/facts.json',
  'node/os-release.txt',
  'node/mounts.txt',
  'node/sysctls.txt',
  'log/agent.txt',
  'net/links.txt',
  'net/routes-v4.txt',
  'firewall/findings.json',
]

test('with an agent it has everything, and no secret', () => {
  const { names, readme, read, text } = bundle()
  expect(names.slice(0, 5)).toEqual(ALWAYS.slice(0, 5))
  for (const name of [...ALWAYS, 'agent/status.json', 'agent/settings.json', 'agent/rules.json', 'maps/maps.json', 'maps/frontends.txt'])
    expect(names).toContain(name)
  expect(JSON.parse(read('agent/status.json'))).toMatchObject({ ready: true })
  expect(JSON.parse(read('maps/rows/np_addrs.json'))).toMatchObject({
    rows: expect.arrayContaining([expect.objectContaining({ key: '192.0.2.1' })]) as unknown,
  })
  expect(JSON.parse(read('programs/links.json'))).not.toEqual([])
  expect(read('programs/programs.json')).toContain('"tag"')
  expect(read('net/addresses.txt')).toContain('192.0.2.1/24')
  expect(readme).toMatch(/agent\/last-good.json +.* -- not read: ENOENT/)
  expect(text).not.toMatch(/hunter22|eyJ|c2lnbmF0dXJl/)
  expect(read('agent/sysctls.json')).toContain('[left out]')
  expect(read('agent/files.txt')).toMatch(/\/mounted \d/)
  expect(read('agent/files.txt')).not.toContain('/mounted/')
  const twice = bundle()
  expect(twice.names).toEqual(names)
})

test("after the agent's death the bundle names the pages it could not read, and has what is in the kernel", async () => {
  await agent.kill()
  const { names, readme, read } = bundle()
  for (const name of [...ALWAYS, 'maps/maps.json', 'maps/counters.txt', 'programs/links.json', 'maps/rows/np_addrs.json'])
    expect(names).toContain(name)
  expect(names).not.toContain('agent/status.json')
  expect(readme).toMatch(/agent\/status.json +.* -- not read: connect ECONNREFUSED 127.0.0.1:9099/)
  expect(read('maps/rows/np_addrs.json')).toContain('192.0.2.1')
  const status = node.sh(`${CTL} node status || echo code $?`)
  expect(status).toBe('code 1\n')
})

test('on a node without anything of ours it says so, and comes to an end', () => {
  const { names, readme } = bundle('--pins /sys/fs/bpf/nowhere')
  for (const name of ALWAYS) expect(names).toContain(name)
  expect(names.filter((name) => name.startsWith('maps/') || name.startsWith('programs/'))).toEqual([])
  expect(readme).toMatch(/maps\/frontends.txt +.* -- not read: there is nothing in \/sys\/fs\/bpf\/nowhere/)
  expect(readFileSync(join(folder, 'bundle.tar.gz')).length).toBeLessThan(1 << 20)
})

test('a file that is named by time alone is never written through a link of another user', () => {
  const here = join(folder, 'open')
  const victim = join(folder, 'victim')
  writeFileSync(victim, 'kept')
  // of each second from one moment on: a loop that asks for the time again leaves one out where it crosses a second
  const time = 'date -u -d "@$((now + i))" +%Y%m%dT%H%M%SZ'
  const names = `now=$(date +%s); for i in $(seq 0 60); do ln -s ${victim} netplane-bundle-$(hostname)-$(${time}).tar.gz; done`
  const ask = `${CTL} node bundle --state-dir ${node.state} && exit 1 || true`
  node.sh(`mkdir ${here}; cd ${here}; ${names}; ${ask}`)
  expect(readFileSync(victim, 'utf8')).toBe('kept')
  node.sh(`rm -r ${here}; mkdir ${here}; cd ${here}; ${CTL} node bundle --state-dir ${node.state}; ls netplane-bundle-*.tar.gz`)
})
