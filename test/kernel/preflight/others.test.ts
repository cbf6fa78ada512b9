// SPDX-License-Identifier: Apache-2.0
/** What other programs have left in a real kernel: rules, programs, pins, network configurations. Layer: test. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { BpfLink, BpfMap, BpfProgram, cgroupAttach, cgroupDetach, tcAttach, tcCreateHook } from '#native'
import { hasTcx } from '#agent/dataplane/attach/tcx.ts'
import { listInterfaces } from '#agent/interfaces/list-interfaces.ts'
import { cgroupPrograms, devicePrograms } from '#agent/preflight/programs.ts'
import { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { PASS, SCHED_CLS } from '../dataplane/attach-cases.ts'
import { blocking, codes, look } from './look.ts'

const CGROUP_SOCK_ADDR = 18
const CONNECT4 = 10
/** r0 = 1; exit */
const ALLOW = Uint8Array.of(0xb7, 0, 0, 0, 1, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0)

let node: ScratchNode

beforeEach(async () => {
  node = await ScratchNode.make()
  node.sh(`
    ip link add eth0 type veth peer name wire0
    ip addr add 192.0.2.1/24 dev eth0
    ip link set eth0 up
    ip link set wire0 up`)
})

afterEach(async () => {
  await node[Symbol.asyncDispose]()
})

const others = (...flags: string[]): ReturnType<typeof look> => look(node, '--group=others', '--node-addresses=192.0.2.1', ...flags)

test('a node without others', async () => {
  expect(await others(`--cni-conf-dir=${join(node.folder, 'none')}`)).toMatchObject({ findings: [], facts: { proxy: 'none' }, exit: 0 })
})

test("kube-proxy's mode is told by its rules, and that there are two", async () => {
  node.sh('iptables-nft -t nat -N KUBE-SERVICES; iptables-nft -t nat -A PREROUTING -j KUBE-SERVICES')
  expect(await others()).toMatchObject({ findings: [], facts: { proxy: 'iptables' } })
  node.sh('nft add table ip kube-proxy')
  const both = await others()
  expect([codes(both), both.facts]).toEqual([['proxy-modes iptables, nftables'], { proxy: 'iptables+nftables' }])
  node.sh('nft delete table ip kube-proxy; iptables-nft -N KUBE-IPVS-FILTER; iptables-nft -A INPUT -j KUBE-IPVS-FILTER')
  expect(codes(await others())).toEqual(['proxy-ipvs-rules'])
})

test('mark bits that others use, and those that are no harm', async () => {
  node.sh(`
    iptables-nft -t mangle -A PREROUTING -j MARK --set-xmark 0x4000/0x4000
    iptables-nft -t mangle -A PREROUTING -m connmark --mark 0x1000000/0x1000000 -j ACCEPT
    iptables-nft -t mangle -A PREROUTING -m comment --comment "-j MARK --set-xmark 0x1000000/0x1000000" -j ACCEPT
    iptables-nft -t mangle -A PREROUTING -j MARK --set-mark 0x1
    ip rule add fwmark 0x80000/0xff0000 lookup 52
    nft 'add table inet mine; add chain inet mine c; add rule inet mine c ct mark set 0x1000000; add rule inet mine c meta mark set meta mark or 0x10'`)
  expect(codes(await others())).toEqual([])
  node.sh(`
    iptables-nft -t mangle -A OUTPUT -j MARK --set-xmark 0x3000000/0x3000000
    ip6tables-nft -t mangle -A INPUT -m mark --mark 0x10000/0xffff0000 -j ACCEPT
    nft 'add rule inet mine c meta mark set meta mark and 0xfbffffff; add rule inet mine c meta mark and 0x2000000 == 0x2000000 accept'
    ip rule add fwmark 0x4000000 lookup 53 priority 100`)
  const found = await others()
  expect(codes(found).sort()).toEqual([
    'mark-bits ip rule 100 0x04000000 0x04000000',
    'mark-bits ip6tables-nft mangle, chain INPUT 0xffff0000 0x07000000',
    'mark-bits iptables-nft mangle, chain OUTPUT 0x03000000 0x03000000',
    'mark-bits nft inet mine, chain c 0x06000000 0x06000000',
  ])
  expect(new Set(blocking(found))).toEqual(new Set(['mark-bits']))
})

test('mark bits in a table that iptables cannot show', async () => {
  node.sh(`
    iptables-nft -t mangle -A OUTPUT -p tcp -j ACCEPT
    nft add rule ip mangle OUTPUT meta mark set meta mark or 0x1000000
    nft 'add rule ip mangle OUTPUT ct state vmap { established : accept, invalid : drop }'`)
  expect(codes(await others())).toEqual(['mark-bits nft ip mangle, chain OUTPUT 0x01000000 0x01000000'])
})

test('a firewall that drops what is of pods', async () => {
  node.sh('iptables-nft -P INPUT DROP')
  const found = await others()
  expect(codes(found)).toEqual([expect.stringMatching(/^firewall-drops the policy of iptables-nft filter, chain INPUT packets of pods to/)])
  expect(blocking(found)).toEqual([])
})

test('pins of another data plane', async () => {
  mkdirSync(node.path('sys/fs/bpf/tc/globals'), { recursive: true })
  mkdirSync(node.path('sys/fs/bpf/mine'))
  const map = BpfMap.create({ name: 'm', type: 2, keySize: 4, valueSize: 4, maxEntries: 1 })
  map.pin(node.path('sys/fs/bpf/mine/map'))
  expect(codes(await others())).toEqual([])
  map.pin(node.path('sys/fs/bpf/tc/globals/cilium_ct4_global'))
  map.close()
  expect(codes(await others())).toEqual(['foreign-pins Cilium /sys/fs/bpf/tc/globals/cilium_ct4_global'])
})

const SOURCE = `
#define SEC(name) __attribute__((section(name), used))
SEC("tc") int cil_from_netdev(void *ctx) { return -1; }
SEC("tc/other") int watcher(void *ctx) { return -1; }
SEC("tc/ours") int from_host(void *ctx) { return -1; }
SEC("tc/older") int from_netdev(void *ctx) { return -1; }
SEC("xdp") int limiter(void *ctx) { return 2; }
char _license[] SEC("license") = "GPL";
`

/** Named as theirs, and letting all pass. */
function compiled(): string {
  const [source, object] = [join(node.folder, 'others.c'), join(node.folder, 'others.o')]
  writeFileSync(source, SOURCE)
  execFileSync('clang-19', ['-O2', '-g', '-target', 'bpf', '-c', source, '-o', object])
  return object
}

test("programs of others on the node's devices, and not ours", async () => {
  const object = compiled()
  node.sh(`
    tc qdisc add dev eth0 clsact
    tc filter add dev eth0 ingress pref 7 bpf da obj ${object} sec tc
    tc filter add dev eth0 egress pref 7 bpf da obj ${object} sec tc/other
    tc filter add dev eth0 egress pref 8 bpf da obj ${object} sec tc/ours
    tc filter add dev eth0 egress pref 9 bpf da obj ${object} sec tc/older
    tc qdisc add dev wire0 clsact
    tc filter add dev wire0 ingress pref 7 bpf da obj ${object} sec tc
    ip link set eth0 xdpgeneric obj ${object} sec xdp`)
  const found = await others()
  expect(codes(found)).toEqual([
    'data-plane-program Cilium eth0/ingress cil_from_netdev',
    'data-plane-program Cilium eth0/egress from_netdev',
    'foreign-program eth0/egress watcher',
    'foreign-program eth0/xdp limiter',
  ])
  expect(blocking(found)).toEqual(['data-plane-program', 'data-plane-program'])
})

test('a program without a name, by whichever hook the kernel has', () => {
  const program = BpfProgram.load({ type: SCHED_CLS, instructions: PASS, license: 'GPL' })
  execFileSync('ip', ['link', 'add', 'pf0', 'type', 'veth', 'peer', 'name', 'pf1'])
  try {
    const [device] = listInterfaces()
      .all()
      .filter(({ name }) => name === 'pf0')
    if (device === undefined) throw new Error('no device')
    using stack = new DisposableStack()
    if (hasTcx()) stack.adopt(BpfLink.attachTcx(program, device.index, 'egress'), (link) => link.close())
    tcCreateHook(device.index)
    tcAttach({ ifindex: device.index, direction: 'ingress', handle: 5, priority: 5 }, program)
    const name = `number ${program.info().id}`
    const tcx = hasTcx() ? [{ place: 'pf0/egress', name }] : []
    expect(devicePrograms([device])).toEqual([{ place: 'pf0/ingress', name }, ...tcx])
  } finally {
    program.close()
    execFileSync('ip', ['link', 'del', 'pf0'])
  }
})

test('programs at the connections of all pods; without a cgroup nothing is told', () => {
  expect(cgroupPrograms(undefined)).toEqual([])
  expect(cgroupPrograms(node.cgroup)).toEqual([])
  const program = BpfProgram.load({ ...{ type: CGROUP_SOCK_ADDR, expectedAttachType: CONNECT4 }, instructions: ALLOW, license: 'GPL' })
  cgroupAttach(node.cgroup, 'connect4', program)
  expect(cgroupPrograms(node.cgroup)).toEqual([{ place: 'cgroup/connect4', name: `number ${program.info().id}` }])
  cgroupDetach(node.cgroup, 'connect4', program)
  program.close()
})

test('network configurations by who plugs pods in', async () => {
  const folder = join(node.folder, 'net.d')
  mkdirSync(folder)
  const list = { cniVersion: '1.0.0', name: 'x', plugins: [{ type: 'bridge' }] }
  const look = (cni: string): ReturnType<typeof others> => others(`--cni-conf-dir=${folder}`, `--cni=${cni}`)
  expect(codes(await look('Chained'))).toEqual([`cni-list-missing ${folder}`])
  writeFileSync(join(folder, '05-flannel.conflist'), JSON.stringify(list))
  writeFileSync(join(folder, '87-podman.conflist'), JSON.stringify(list))
  writeFileSync(join(folder, '10-netplane.conflist'), '{}')
  const own = await look('Netplane')
  expect(codes(own)).toEqual(['cni-list-before 05-flannel.conflist', 'cni-list-after 87-podman.conflist'])
  expect(blocking(own)).toEqual(['cni-list-before'])
  expect(codes(await look('Chained'))).toEqual([])
  expect(codes(await look('None'))).toEqual([])
  writeFileSync(join(folder, '05-flannel.conflist'), '{"plugins": [7]}')
  expect(codes(await look('Chained'))).toEqual([expect.stringMatching(/^cni-list-unusable 05-flannel.conflist: plugins/)])
})
