// SPDX-License-Identifier: Apache-2.0
/** Marks that processes of the node give their packets (SO_MARK) against rules of the host: real sockets, behind the
 * program that asks the rules. Layer: test. */
import { execFileSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { BpfProgram, ifindexOf, tcAttach, tcCreateHook, tcDetach, type TcFilter } from '#native'
import { HOST_REAL } from '#lib/base/bpf-constants.ts'
import { catalogue } from '#agent/maps/catalogue.ts'
import type { HostSets } from '#agent/maps/shapes.ts'
import { ASKED, DECIDED, TRANSLATED, devices, families, neighbourMac, type Family } from '../../../testkit/packets/cluster.ts'
import { fill, openMaps } from '../../../testkit/packets/case-maps.ts'
import { loadObject, program, TestMap, type Loaded } from '../../../testkit/packets/objects.ts'
import { setUpNamespace, testCfg } from '../../../testkit/packets/runner.ts'
import { kernelFacts } from '../kernel-facts.ts'
import { CLOSED, NO_RULES } from './host-sets.ts'

const NOTHING_LEAVES: HostSets = { ...NO_RULES, normal_egress: CLOSED }
const OUTSIDE = 'nplk-outside'
const OF_OTHERS = 0x00f0
const MARKS = [0, OF_OTHERS, DECIDED, TRANSLATED, ASKED, DECIDED | TRANSLATED | ASKED | OF_OTHERS]
const KINDS = ['tcp', 'udp', 'raw']
const SCHED_CLS = 3
/** of base/mark.h */
const INDEX = 0x6e70

const opened: { loaded?: Loaded; hosts?: TestMap<{ ifindex: number; view: number }, HostSets>; clear: () => Promise<void> } = {
  clear: () => Promise.resolve(),
}
const filter = (priority: number): TcFilter => ({
  ifindex: ifindexOf(devices.underlay.name),
  direction: 'egress',
  handle: 1,
  priority,
})

function ip(lines: readonly string[], netns?: string): void {
  execFileSync('ip', [...(netns === undefined ? [] : ['-netns', netns]), '-batch', '-'], { input: `${lines.join('\n')}\n` })
}

/** Which of these sockets got an answer from the host: of kinds, each with every mark. The host has no such ports: it
 * refuses, or sends the echo back. */
const ASKING = `
use strict; use Socket qw(:all); use IO::Handle; use Time::HiRes qw(time);
my ($v4, $to, @asked) = @ARGV; my ($family, $id, @open) = ($v4 ? AF_INET : AF_INET6, 0);
my $at = sub { $v4 ? pack_sockaddr_in($_[0], inet_pton($family, $to)) : pack_sockaddr_in6($_[0], inet_pton($family, $to)) };
for my $asked (@asked) {
  my ($kind, $mark) = split /:/, $asked; my $raw = $kind eq 'raw'; $id++;
  my ($type, $proto) = $raw ? (SOCK_RAW, $v4 ? 1 : 58) : $kind eq 'udp' ? (SOCK_DGRAM, 17) : (SOCK_STREAM, 6);
  socket(my $s, $family, $type, $proto) or die $!;
  setsockopt($s, SOL_SOCKET, 36, pack 'I', $mark) or die $!;
  $s->blocking(0); connect($s, $at->($raw ? 0 : 8000 + $id));
  send($s, $raw ? pack('CCnnn', $v4 ? (8, 0, 0xf7ff - $id) : (128, 0, 0), $id, 0) : 'x', 0) if $kind ne 'tcp';
  push @open, [$asked, $s, $raw, $id];
}
my %answered; my $until = time + 1;
while (time < $until && keys %answered < @asked) {
  select undef, undef, undef, 0.02;
  for (@open) {
    my ($asked, $s, $raw, $id) = @$_;
    if (!$raw) { $answered{$asked} = 1 if unpack('I', getsockopt($s, SOL_SOCKET, SO_ERROR)) == 111; next }
    while (defined recv($s, my $got, 512, 0)) {
      my ($type, undef, undef, $is) = unpack 'CCnn', $v4 ? substr $got, 20 : $got;
      $answered{$asked} = 1 if $type == ($v4 ? 0 : 129) && $is == $id;
    }
  }
}
print join ' ', sort keys %answered;
`

const name = (kind: string, mark: number): string => `${kind}:${mark}`
const ALL = KINDS.flatMap((kind) => MARKS.map((mark) => name(kind, mark))).sort()

async function answered(f: Family): Promise<string[]> {
  await opened.clear()
  const told = execFileSync('perl', ['-e', ASKING, f.v4 ? '1' : '', f.client, ...ALL], { encoding: 'utf8' })
  return told === '' ? [] : told.split(' ')
}

/** As a program of ours that has the packet before: `mark |= DECIDED`, with its index or without. */
function marking(withIndex: boolean): BpfProgram {
  const store = (offset: number, value: number): Buffer[] => [
    instruction(0xb7, 0x00, { value }), // r0 = value
    instruction(0x63, 0x01, { offset }), // *(u32 *)(r1 + offset) = r0
  ]
  const [mark, index] = [store(8, DECIDED), store(44, INDEX)]
  const pass = [instruction(0xb7, 0x00, { value: -1 }), instruction(0x95, 0, {})]
  return BpfProgram.load({ type: SCHED_CLS, instructions: Buffer.concat([...mark, ...(withIndex ? index : []), ...pass]) })
}

/** struct bpf_insn; `registers`: source in the upper half. */
function instruction(opcode: number, registers: number, { offset = 0, value = 0 }: { offset?: number; value?: number }): Buffer {
  const buffer = Buffer.alloc(8)
  buffer.writeUInt8(opcode, 0)
  buffer.writeUInt8(registers, 1)
  buffer.writeInt16LE(offset, 2)
  buffer.writeInt32LE(value, 4)
  return buffer
}

beforeAll(async () => {
  setUpNamespace()
  const { underlay } = devices
  ip([`netns add ${OUTSIDE}`, `link set ${underlay.name}p netns ${OUTSIDE}`])
  ip(
    [
      `link set ${underlay.name}p address ${neighbourMac} up`,
      ...families.flatMap((f) => [
        `addr add ${f.client}/${f.v4 ? 24 : 64} dev ${underlay.name}p${f.v4 ? '' : ' nodad'}`,
        `neigh replace ${f.node} lladdr ${underlay.mac} dev ${underlay.name}p`,
      ]),
    ],
    OUTSIDE,
  )
  // the host refuses each at once
  for (const setting of ['ipv4.icmp_ratelimit', 'ipv6.icmp.ratelimit'])
    execFileSync('ip', ['netns', 'exec', OUTSIDE, 'sysctl', '-qw', `net.${setting}=0`])
  const { features, missingHelpers } = kernelFacts()
  const loaded = await loadObject('tc', { cfg: testCfg(features), stubHelpers: missingHelpers })
  fill(openMaps(loaded), {})
  const ct = new TestMap(loaded, catalogue.np_ct)
  Object.assign(opened, { loaded, hosts: new TestMap(loaded, catalogue.np_hosts), clear: () => ct.clear() })
  tcCreateHook(filter(2).ifindex)
  tcAttach(filter(2), program(loaded, 'to_host'))
})

afterAll(() => {
  ip([`link del ${devices.underlay.name}`, `netns del ${OUTSIDE}`])
  opened.loaded?.object.close()
})

describe.each(families)('$name', (f) => {
  test('without rules everything is answered, whatever its mark', async () => {
    opened.hosts?.delete({ ifindex: filter(2).ifindex, view: HOST_REAL })
    expect(await answered(f)).toEqual(ALL)
  })

  test('rules that let nothing leave hold for every mark', async () => {
    opened.hosts?.set({ ifindex: filter(2).ifindex, view: HOST_REAL }, NOTHING_LEAVES)
    expect(await answered(f)).toEqual([])
  })

  test.each([
    ['by its index too, is what rules have been asked of', true],
    ['by the mark alone, is not', false],
  ])('what a program has marked, %s', async (_, withIndex) => {
    opened.hosts?.set({ ifindex: filter(2).ifindex, view: HOST_REAL }, NOTHING_LEAVES)
    const before = marking(withIndex)
    tcAttach(filter(1), before)
    try {
      expect(await answered(f)).toEqual(withIndex ? ALL : [])
    } finally {
      tcDetach(filter(1))
      before.close()
    }
  })
})
