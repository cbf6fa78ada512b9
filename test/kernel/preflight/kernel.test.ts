// SPDX-License-Identifier: Apache-2.0
/** A kernel that runs the programs, and what is told of one that does not; other kernels are in virtual machines.
 * Layer: test. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { release } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { hookFindings } from '#agent/preflight/kernel.ts'
import { toolRunner } from '#lib/base/os/run-tool.ts'
import { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'
import { blocking, codes, look } from './look.ts'
import { programCommand } from '../../../testkit/base/program.ts'

let node: ScratchNode

beforeEach(async () => {
  node = await ScratchNode.make()
})

afterEach(async () => {
  await node[Symbol.asyncDispose]()
})

const kernel = (...flags: string[]): ReturnType<typeof look> => look(node, '--group=kernel', ...flags)

test('this kernel does, and nothing is left of the trial', async () => {
  const before = node.sh('find /sys/fs/bpf; ip -o link; ls /run/netplane 2>/dev/null || true')
  expect(await kernel()).toMatchObject({ findings: [], facts: { kernel: release() }, exit: 0 })
  expect(node.sh('find /sys/fs/bpf; ip -o link; ls /run/netplane 2>/dev/null || true')).toBe(before)
})

/** It reads beyond its packet, which a verifier lets no program do. */
const REFUSED = `
#define SEC(name) __attribute__((section(name), used))
struct { int (*type)[1]; int *key; int *value; int (*max_entries)[1]; } np_ct SEC(".maps");
struct __sk_buff { unsigned skip[19]; unsigned data, data_end; };
SEC("tc") int from_workload(struct __sk_buff *skb) { return *(char *)(long)skb->data; }
char _license[] SEC("license") = "GPL";
`

test('one that refuses the programs is told with its reason', async () => {
  const folder = join(node.folder, 'objects')
  mkdirSync(folder)
  writeFileSync(join(folder, 'refused.c'), REFUSED)
  for (const name of ['tc', 'tc.floor'])
    execFileSync('clang-19', ['-g', '-O2', '-target', 'bpf', '-c', join(folder, 'refused.c'), '-o', join(folder, `${name}.bpf.o`)])
  const found = await kernel(`--objects=${folder}`, '--check')
  expect(codes(found)).toEqual([expect.stringMatching(new RegExp(`^kernel-refuses ${release()} .*(Permission denied|EACCES)`))])
  expect([blocking(found), found.exit]).toEqual([['kernel-refuses'], 1])
})

test('a BPF file system in which others may write', async () => {
  chmodSync(node.path('sys/fs/bpf'), 0o777)
  const found = await kernel()
  expect(codes(found)).toEqual([expect.stringMatching(/^bpffs-unsafe bpffs: others may change what is in \/sys\/fs\/bpf/)])
})

test('a folder on a file system that is mounted to be read only', async () => {
  const root = join(node.folder, 'root')
  mkdirSync(join(root, 'run'), { recursive: true })
  mkdirSync(join(root, 'opt'))
  node.sh(`mount -t tmpfs -o ro none ${join(root, 'opt')}`)
  const found = await kernel(`--node-root=${root}`, '--host-path=/run/netplane', '--host-path=/opt/cni/bin')
  expect(codes(found)).toEqual(['host-path /opt/cni/bin EROFS'])
  expect(blocking(found)).toEqual(['host-path'])
})

test('filters are tried where no other process sees them', async () => {
  const devices = execFileSync('tc', ['qdisc', 'show'], { encoding: 'utf8' })
  expect(await hookFindings(toolRunner({ timeoutMs: HANG_MS }))).toEqual([])
  expect(execFileSync('tc', ['qdisc', 'show'], { encoding: 'utf8' })).toBe(devices)
})

test('a pod without the capabilities of an agent cannot try, and says which are missing', () => {
  const log = join(node.folder, 'log')
  const flags = ['preflight', '--group=kernel', `--termination-log=${log}`]
  const agent = programCommand('agent')
  const told = node.sh(`setpriv --bounding-set=-sys_admin,-net_raw --inh-caps=-sys_admin,-net_raw ${[...agent, ...flags].join(' ')}`)
  expect(told).toContain('kernel: blocking: pods lack NET_RAW, SYS_ADMIN here')
})
