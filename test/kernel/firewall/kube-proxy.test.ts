// SPDX-License-Identifier: Apache-2.0
/** kube-proxy's rules go from a kernel that has those of others as well, and theirs stay as they were. Layer: test. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { endTakeover, findKubeProxy, proxyRulesText, removeKubeProxy, unservedOf } from '#agent/dataplane/kube-proxy/cleanup.ts'
import { formatAddr, parseAddr } from '#lib/base/ip.ts'
import { mustRun } from '../../../lab/processes/command.ts'

/** Some of it mentions kube-proxy's chains without being its own. */
const FOREIGN = `*mangle
:MINE - [0:0]
-A FORWARD -j MINE
-A MINE -p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu
COMMIT
*filter
:INPUT ACCEPT [0:0]
:FORWARD DROP [0:0]
:KUBE-NWPLCY-DEFAULT - [0:0]
-A INPUT -m comment --comment "never -j KUBE-SERVICES \\"here\\"" -j ACCEPT
-A FORWARD -j KUBE-NWPLCY-DEFAULT
-A KUBE-NWPLCY-DEFAULT -m comment --comment "rule to mark traffic" -j MARK --set-xmark 0x10000/0x10000
COMMIT
*nat
:MINE - [0:0]
-A PREROUTING -j MINE
-A MINE -p tcp -m tcp --dport 8080 -j REDIRECT --to-ports 80
COMMIT
`

/** Serves at the endpoints of the fixtures' service, connects to that service, and sends it what it reads; an answer
 * that does not come ends it. */
const ECHO = `
const net = require('node:net')
net.createServer((socket) => socket.pipe(socket)).listen(8080, '0.0.0.0', () => {
  const socket = net.connect(80, '10.97.0.11')
  socket.setTimeout(5000, () => process.exit(1)).on('data', (data) => console.log(String(data))).on('error', () => process.exit(1))
  process.stdin.on('data', (data) => socket.write(data))
})`

const fixture = (name: string): string => readFileSync(new URL(`../../agent/dataplane/kube-proxy/${name}`, import.meta.url), 'utf8')

let holder: ChildProcess
const run = (command: readonly string[], input = ''): Promise<string> =>
  mustRun(['nsenter', `--net=/proc/${String(holder.pid)}/ns/net`, ...command], { input })

beforeEach(async () => {
  holder = spawn('unshare', ['--net', 'sh', '-c', 'echo ready && exec cat'], { stdio: ['pipe', 'pipe', 'inherit'] })
  if (holder.stdout !== null) await once(holder.stdout, 'data')
})

afterEach(async () => {
  const closed = once(holder, 'close')
  holder.stdin?.end()
  await closed
})

/** Without the time, and without counts of packets, which others may have sent meanwhile. */
async function rulesOf(tool: string): Promise<string> {
  return (await run([`${tool}-save`])).replaceAll(/^#.*\n|\[\d+:\d+\]/gm, '')
}

/** In the order of the saved one, after what is there: its counters live in another part of the kernel, which it
 * fills itself. */
async function restoreProxy(tool: string, chosen: (line: string) => boolean): Promise<void> {
  const saved = fixture(tool.startsWith('ip6') ? 'ip6tables.txt' : 'iptables.txt')
  const lines = saved.replaceAll(/ -m nfacct --nfacct-name +\S+/g, '').split('\n')
  const ours = lines.filter((line) => /^(\*|COMMIT)/.test(line) || (/KUBE-/.test(line) && chosen(line)))
  await run([`${tool}-restore`, '--noflush'], `${ours.join('\n')}\n`)
}

const isKubelets = (line: string): boolean => line.includes('KUBE-FIREWALL')

describe.each(['iptables-nft', 'ip6tables-nft', 'iptables-legacy', 'ip6tables-legacy'])('%s', (tool) => {
  test('its rules go, those of others stay byte for byte', async () => {
    await run([`${tool}-restore`], FOREIGN)
    await restoreProxy(tool, isKubelets)
    const before = await rulesOf(tool)
    await restoreProxy(tool, (line) => !isKubelets(line))
    expect(await rulesOf(tool)).not.toBe(before)

    const removed = await removeKubeProxy(run)
    expect(removed.map(proxyRulesText)).toEqual([
      expect.stringMatching(`^${tool}: (?=.*mangle 1 chains, 0 jumps)(?=.*filter 6 chains, 9 jumps)(?=.*nat \\d+ chains, 3 jumps)`),
    ])
    expect(await rulesOf(tool)).toBe(before)
    expect(await findKubeProxy(run)).toEqual([])
    expect(await endTakeover(run)).toBe(true)
  })

  test('a chain of others keeps what it has beside the jump, and the mark it borrows', async () => {
    await restoreProxy(tool, (line) => !isKubelets(line))
    const masquerade = (await rulesOf(tool)).split('\n').filter((line) => /^-A (KUBE-MARK-MASQ|KUBE-POSTROUTING|POSTROUTING) /.test(line))
    const rules = ['-A MINE -p tcp -j KUBE-MARK-MASQ', '-A MINE -j KUBE-SERVICES', '-A MINE -p udp -j ACCEPT']
    await run([`${tool}-restore`, '--noflush'], ['*nat', ':MINE - [0:0]', ...rules, 'COMMIT', ''].join('\n'))

    await removeKubeProxy(run)
    const left = (await rulesOf(tool)).split('\n').filter((line) => line.startsWith('-A'))
    expect(left.toSorted()).toEqual([...masquerade, rules[0], rules[2]].toSorted())
  })
})

describe.each([
  ['iptables-nft', 'ip', 'snat to 192.0.2.1'],
  ['ip6tables-nft', 'ip6', 'snat to 2001:db8::1'],
])('%s cannot show a table in which nft has a rule of its own', (tool, family, snat) => {
  test.each([
    ['nat', `POSTROUTING oifname "wan0" masquerade`],
    ['nat', `POSTROUTING oifname "wan0" ${snat}`],
    ['nat', `PREROUTING tcp dport { 8080, 8081 } redirect to :80 comment "never jump KUBE-SERVICES"`],
    ['filter', 'FORWARD ct state vmap { established : accept, invalid : drop }'],
  ])('the rules of its table %s go all the same, and %s stays', async (table, rule) => {
    await run([`${tool}-restore`], FOREIGN)
    await restoreProxy(tool, isKubelets)
    const nft = (): Promise<string> => run(['nft', '-s', 'list', 'ruleset'])
    const before = await nft()
    await restoreProxy(tool, (line) => !isKubelets(line))
    await run(['nft', `add rule ${family} ${table} ${rule}`])
    expect(await run([`${tool}-save`])).toContain(`# Table \`${table}' is incompatible`)

    const [found, ...more] = await removeKubeProxy(run)
    expect([found && proxyRulesText(found), more]).toEqual([
      expect.stringMatching(`^${tool}: (?=.*mangle 1 chains, 0 jumps)(?=.*filter 6 chains, 9 jumps)(?=.*nat \\d+ chains, 3 jumps)`),
      [],
    ])
    expect(await findKubeProxy(run)).toEqual([])
    expect(await endTakeover(run)).toBe(true)
    const [lines, after] = [before, await nft()].map((listing) => listing.split('\n'))
    expect(lines?.filter((line) => after?.includes(line) !== true)).toEqual([])
    // the tool has made the chains of the kernel's hooks
    const isChain = (line: string): boolean => /^\tchain [A-Z]+ |^\t\ttype /.test(line)
    expect(after?.filter((line) => lines?.includes(line) !== true && !isChain(line))).toHaveLength(1)
  })

  test('services that it has there are served', async () => {
    await restoreProxy(tool, (line) => !isKubelets(line))
    await run(['nft', `add rule ${family} nat POSTROUTING masquerade`])
    const service = parseAddr(family === 'ip' ? '10.97.0.11' : 'fd00:97::11')
    const found = await findKubeProxy(run)
    const other = parseAddr('192.0.2.77')
    expect((await unservedOf([service, other], found, run)).map(formatAddr)).toEqual(['192.0.2.77'])
  })
})

test('nftables: its two tables go, those of others stay byte for byte', async () => {
  await run(
    ['nft', '-f', '-'],
    'table ip kube-proxy-of-mine {}\ntable inet kube-proxy { chain c { type filter hook input priority 0; }; }\n',
  )
  const before = await run(['nft', 'list', 'ruleset'])
  await run(['nft', '-f', '-'], fixture('nftables.txt'))
  expect((await removeKubeProxy(run)).map(proxyRulesText)).toEqual(['nft: table ip kube-proxy; table ip6 kube-proxy'])
  expect(await endTakeover(run)).toBe(true)
  expect(await run(['nft', 'list', 'ruleset'])).toBe(before)
  expect(await endTakeover(run)).toBe(false)
})

test.each([
  ['iptables-nft', (): Promise<void> => restoreProxy('iptables-nft', (line) => !isKubelets(line))],
  ['iptables-legacy', (): Promise<void> => restoreProxy('iptables-legacy', (line) => !isKubelets(line))],
  [
    'nftables',
    async (): Promise<void> => {
      await run(['nft', '-f', '-'], fixture('nftables.txt'))
    },
  ],
])('%s: a connection that was made through it lives on until the takeover ends', async (_, load) => {
  for (const address of ['10.245.1.11/32', '10.245.2.11/32']) await run(['ip', 'address', 'add', address, 'dev', 'lo'])
  await run(['ip', 'link', 'set', 'lo', 'up'])
  await run(['ip', 'route', 'add', '10.97.0.0/16', 'dev', 'lo'])
  await load()
  const connection = spawn('nsenter', [`--net=/proc/${String(holder.pid)}/ns/net`, process.execPath, '-e', ECHO], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: connection.stdout })[Symbol.asyncIterator]()
  const echo = async (text: string): Promise<string> => {
    connection.stdin.write(text)
    const line = await lines.next()
    return line.done === true ? 'no answer' : line.value
  }
  try {
    expect(await echo('before')).toBe('before')
    expect(await removeKubeProxy(run)).not.toEqual([])
    expect(await echo('after')).toBe('after')
    expect(await run(['ss', '-Htn', 'dst', '10.97.0.11'])).toContain('ESTAB')
  } finally {
    const closed = once(connection, 'close')
    connection.kill('SIGKILL')
    await closed
  }
})

test('nothing is there: nothing is found, and no table comes into being', async () => {
  expect(await removeKubeProxy(run)).toEqual([])
  expect(await run(['nft', 'list', 'ruleset'])).toBe('')
  expect(await run(['iptables-legacy-save'])).toBe('')
})
