// SPDX-License-Identifier: Apache-2.0
/** Every way of attaching programs against the kernel itself. Layer: test. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  BpfLink,
  BpfObject,
  cgroupQuery,
  ifindexOf,
  NetlinkSocket,
  tcAttach,
  tcCreateHook,
  tcDetach,
  tcQuery,
  tcxQuery,
  xdpAttach,
  xdpQuery,
  type BpfProgram,
} from '#native'
import { silentLog } from '#lib/obs/log.ts'
import { Attachments } from '#agent/dataplane/attach/attachments.ts'
import { cgroup2Mount, CgroupAttachments, CgroupLinks, cgroupPlace } from '#agent/dataplane/attach/cgroup.ts'
import { cleanup } from '#agent/dataplane/cleanup.ts'
import { ClsactHooks } from '#agent/dataplane/attach/clsact.ts'
import { interfaceHook, pinName, type Hooks, type InterfaceHook, type LoadedProgram } from '#agent/dataplane/attach/hook.ts'
import { LinkPins } from '#agent/dataplane/attach/link-pins.ts'
import { Pins } from '#agent/dataplane/pins.ts'
import { Standbys } from '#agent/dataplane/attach/standbys.ts'
import { hasTcx, TcxHooks } from '#agent/dataplane/attach/tcx.ts'
import { XdpHooks, xdpPlace } from '#agent/dataplane/attach/xdp.ts'
import { InterfaceMonitor } from '#agent/interfaces/monitor.ts'
import type { Interfaces } from '#agent/interfaces/table.ts'
import { compileTo } from '../../support/compiled.ts'
import { hooksContract } from '../../support/contracts/hooks-contract.ts'
import { loadObject, type Loaded } from '../../../testkit/packets/objects.ts'
import { kernelFacts } from '../kernel-facts.ts'
import { runMarked } from '../../../testkit/packets/mark.ts'
import { testCfg } from '../../../testkit/packets/runner.ts'

const IFACE = 'np.test'
const PEER = 'np-peer'
const facts = kernelFacts()
const loaded: Loaded[] = []
let folder: string
let cgroup: string
let held: Disposable[]

beforeAll(async () => {
  for (const name of ['tc', 'connect', 'xdp'] as const) {
    loaded.push(await loadObject(name, { cfg: testCfg(facts.features), stubHelpers: facts.missingHelpers }))
    loaded.push(await loadObject(name, { cfg: testCfg(facts.features), stubHelpers: facts.missingHelpers }))
  }
  const mount = cgroup2Mount(readFileSync('/proc/self/mounts', 'utf8'))
  if (mount === undefined) throw new Error('no cgroup2 is mounted')
  cgroup = mkdtempSync(join(mount, 'netplane-hooks-'))
})

afterAll(() => {
  for (const { object } of loaded) object.close()
  rmdirSync(cgroup)
})

beforeEach(() => {
  held = []
  folder = mkdtempSync('/sys/fs/bpf/np-hooks-')
  plug()
})

afterEach(() => {
  for (const one of held) one[Symbol.dispose]()
  rmSync(folder, { recursive: true })
  const attachments = new CgroupAttachments(cgroup)
  for (const key of attachments.list()) attachments.clear(key)
  unplug()
})

function plug(): void {
  execFileSync('ip', ['link', 'add', IFACE, 'type', 'veth', 'peer', 'name', PEER])
}

function unplug(): void {
  if (ifindexOf(IFACE) !== 0) execFileSync('ip', ['link', 'del', IFACE])
}

function pins(): LinkPins {
  const one = new LinkPins(join(folder, 'links'))
  held.push(one)
  return one
}

/** The program of the two objects at `object`, and one that another place takes. */
function programs(object: number, name: string, other = name): readonly [LoadedProgram, LoadedProgram, LoadedProgram] {
  const take = (at: number, which: string): LoadedProgram => {
    const handle = loaded[at]?.object.program(which)
    if (handle === undefined) throw new Error('not loaded')
    return { id: handle.info().id, handle }
  }
  return [take(object, name), take(object + 1, name), take(object, other)]
}

function hooks(): readonly [InterfaceHook, InterfaceHook] {
  const iface = { name: IFACE, index: ifindexOf(IFACE) }
  return [interfaceHook(iface, 'ingress'), interfaceHook(iface, 'egress')]
}

/** A foreign program, which always returns the same. */
async function foreignProgram(section = 'tc', result = -1): Promise<BpfProgram> {
  const path = join(mkdtempSync(join(tmpdir(), 'netplane-foreign-')), 'watch.o')
  compileTo(
    path,
    `__attribute__((section("${section}"), used)) int watch(void *skb) { return ${result}; }\nchar gpl[] __attribute__((section("license"), used)) = "GPL";`,
  )
  const object = BpfObject.open(path)
  rmSync(dirname(path), { recursive: true })
  await object.load()
  return object.program('watch')
}

function interfaces(): Interfaces {
  const monitor = new InterfaceMonitor({ socket: NetlinkSocket.open({ protocol: 0 }), log: silentLog })
  monitor.start()
  monitor[Symbol.dispose]()
  return monitor.interfaces
}

/** Hooks of an interface that went after it was seen. */
function writesToGone(open: () => Hooks<InterfaceHook>): void {
  test('an interface that has gone is reported by a code of its own', () => {
    const [hook] = hooks()
    const [one] = programs(0, 'from_host')
    const ours = open()
    unplug()
    expect(() => {
      ours.write(hook, one)
    }).toThrow(expect.objectContaining({ code: 'ENODEV' }))
  })
}

describe.skipIf(!hasTcx())('tcx links', () => {
  writesToGone(() => new TcxHooks(pins()))
  hooksContract(() => ({ open: () => new TcxHooks(pins()), places: hooks(), programs: programs(0, 'from_host') }))

  test('a program is swapped on the same link, in place', () => {
    const [hook] = hooks()
    const [one, two] = programs(0, 'from_host')
    const tcx = new TcxHooks(pins())
    tcx.write(hook, one)
    const before = tcxQuery(hook.instance, 'ingress').linkIds
    tcx.write(hook, two)
    expect(tcxQuery(hook.instance, 'ingress')).toEqual({ programIds: [two.id], linkIds: before })
  })

  test('a link that was detached, or whose interface came again, is created again', () => {
    const [one] = programs(0, 'from_host')
    const tcx = new TcxHooks(pins())
    const [hook] = hooks()
    tcx.write(hook, one)
    const link = BpfLink.openPin(join(folder, 'links', readdirSync(join(folder, 'links'))[0] ?? ''))
    link.detach()
    link.close()
    expect(tcx.read(hook)).toBeUndefined()
    tcx.write(hook, one)
    expect(tcx.read(hook)).toBe(one.id)
    unplug()
    plug()
    const [again] = hooks()
    expect(tcx.read(again)).toBeUndefined()
    tcx.write(again, one)
    expect(tcxQuery(again.instance, 'ingress').programIds).toEqual([one.id])
  })

  test('a pin that another process removed is put back, and the program was never off', () => {
    const [one] = programs(0, 'from_host')
    const tcx = new TcxHooks(pins())
    const [hook] = hooks()
    tcx.write(hook, one)
    const { linkIds } = tcxQuery(hook.instance, 'ingress')
    rmSync(join(folder, 'links'), { recursive: true })
    expect(tcx.read(hook)).toBeUndefined()
    tcx.write(hook, one)
    expect(tcxQuery(hook.instance, 'ingress').linkIds).toEqual(linkIds)
  })
})

describe.skipIf(!hasTcx())('what stands by behind tcx links', () => {
  const detach = (hook: InterfaceHook): void => {
    const link = BpfLink.openPin(join(folder, 'links', pinName(hook.key)))
    link.detach()
    link.close()
  }
  const running = (hook: InterfaceHook): number[] => tcxQuery(hook.instance, 'ingress').programIds

  function standing() {
    const [hook] = hooks()
    const [one, two, standby] = programs(0, 'from_host', 'standby_from_host')
    const standbys = new Standbys()
    held.push(standbys)
    const tcx = new TcxHooks(pins(), standbys)
    tcx.write(hook, one)
    standbys.setDesired([{ place: hook, program: standby }])
    const always = (): number => one.id
    expect([standbys.attachNext(always), standbys.attachNext(always), standbys.complete]).toEqual([true, false, true])
    return { hook, one, two, standby, standbys, tcx, always }
  }

  test('takes over when another process detaches the link, and becomes ours where it is', () => {
    const { hook, one, standby, standbys, tcx, always } = standing()
    expect(running(hook)).toEqual([one.id, standby.id])
    detach(hook)
    expect(running(hook)).toEqual([standby.id])
    tcx.write(hook, one)
    expect([running(hook), tcx.read(hook), standbys.complete]).toEqual([[one.id], one.id, false])
    expect([standbys.attachNext(always), running(hook)]).toEqual([true, [one.id, standby.id]])
    detach(hook)
    expect(running(hook)).toEqual([standby.id])
  })

  test('comes only where ours is, ends with its interface, and of other programs a new one comes', async () => {
    const { hook, one, two, standby, standbys, always } = standing()
    expect(standbys.attachNext(() => undefined)).toBe(false)
    standbys.setDesired([{ place: hook, program: two }])
    await expect.poll(() => running(hook)).toEqual([one.id])
    expect([standbys.attachNext(() => undefined), standbys.attachNext(always), running(hook)]).toEqual([false, true, [one.id, two.id]])
    unplug()
    expect(standbys.complete).toBe(false)
    expect([standbys.attachNext(always), standbys.complete]).toEqual([true, true])
    plug()
    standbys.setDesired([{ place: hooks()[0], program: standby }])
    expect([standbys.attachNext(always), running(hooks()[0])]).toEqual([true, [standby.id]])
  })

  test('one that another process detaches is missed, and all end with the agent', async () => {
    const { hook, one, standby, standbys, always } = standing()
    const [, id = 0] = tcxQuery(hook.instance, 'ingress').linkIds
    execFileSync('bpftool', ['link', 'detach', 'id', String(id)])
    expect([running(hook), standbys.complete, standbys.attachNext(always)]).toEqual([[one.id], false, true])
    expect(running(hook)).toEqual([one.id, standby.id])
    standbys[Symbol.dispose]()
    await expect.poll(() => running(hook)).toEqual([one.id])
  })

  test('nothing stands by behind another’s program, which may write over the word', () => {
    const [hook] = hooks()
    const [one, stranger, standby] = programs(0, 'from_host', 'standby_from_host')
    const standbys = new Standbys()
    held.push(standbys)
    new TcxHooks(pins(), standbys).write(hook, one)
    const link = BpfLink.attachTcx(stranger.handle, hook.instance, 'ingress')
    held.push({ [Symbol.dispose]: () => link.close() })
    standbys.setDesired([{ place: hook, program: standby }])
    expect([standbys.attachNext(() => one.id), standbys.complete, running(hook)]).toEqual([true, true, [one.id, stranger.id]])
  })

  test('does what the program before it would have done, unless this one has passed the packet on, here', async () => {
    const { object } = await loadObject('tc', { cfg: testCfg(facts.features), stubHelpers: facts.missingHelpers })
    const [standby, from, to] = ['standby_from_workload', 'from_workload', 'to_workload'].map((name) => object.program(name)) as [
      BpfProgram,
      BpfProgram,
      BpfProgram,
    ]
    const head = Buffer.from('020000000002020000000001', 'hex')
    const [other, tagged] = [Buffer.concat([head, Buffer.from('88b5', 'hex'), Buffer.alloc(50)]), vlan(head)]
    const judge = (word: number): number => runMarked(standby, tagged, { mark: 0, word }).retval | 0
    const wordOf = (program: BpfProgram, device = 0): number => runMarked(program, other, { mark: 0, device }).word
    expect([runMarked(from, tagged, { mark: 0 }).retval, judge(0)]).toEqual([2, 2])
    expect([judge(wordOf(from)), judge(wordOf(to)), judge(wordOf(from, ifindexOf(IFACE)))]).toEqual([-1, 2, 2])
    object.close()
  })
})

function vlan(head: Buffer): Buffer {
  return Buffer.concat([head, Buffer.from('81000005', 'hex'), Buffer.alloc(48)])
}

describe('clsact filters', () => {
  writesToGone(() => ClsactHooks.ofPackets(interfaces()))
  hooksContract(() => ({ open: () => ClsactHooks.ofPackets(interfaces()), places: hooks(), programs: programs(0, 'from_host') }))

  test('a stranger’s filter in our place is left alone, and named; one beside it does not matter', async () => {
    const [hook] = hooks()
    const [one] = programs(0, 'from_host')
    const place = { ifindex: hook.instance, direction: 'ingress', handle: 1, priority: 1 } as const
    tcCreateHook(hook.instance)
    const stranger = await foreignProgram()
    tcAttach(place, stranger)
    const clsact = ClsactHooks.ofPackets(interfaces())
    expect(clsact.read(hook)).toBeUndefined()
    expect(() => {
      clsact.write(hook, one)
    }).toThrow(/another's: program \d+ watch/)
    clsact.clear(hook.key)
    expect(tcQuery(place)).toBe(stranger.info().id)
    tcDetach(place)
    tcAttach({ ...place, handle: 2 }, stranger)
    clsact.write(hook, one)
    clsact.clear(hook.key)
    expect(tcQuery({ ...place, handle: 2 })).toBe(stranger.info().id)
  })

  test('the program that drops all stays where those of packets are removed, and the other way round', () => {
    const [hook, other] = hooks()
    const [packets] = programs(0, 'from_host')
    const [drop] = programs(0, 'drop_tunnel')
    const [ofPackets, ofDrop] = [ClsactHooks.ofPackets(interfaces()), ClsactHooks.ofDrop(interfaces())]
    ofPackets.write(hook, packets)
    ofDrop.write(other, drop)
    expect([ofPackets.list(), ofDrop.list()]).toEqual([[hook.key], [other.key]])
    for (const key of [hook.key, other.key]) ofPackets.clear(key)
    expect([ofPackets.list(), ofDrop.read(other)]).toEqual([[], drop.id])
    ofDrop.clear(other.key)
    expect(ofDrop.list()).toEqual([])
  })

  test('cleanup takes ours and the empty clsact, but not one that others use', () => {
    const [hook] = hooks()
    const [one] = programs(0, 'from_host')
    const options = { pins: new Pins(join(folder, 'netplane')), sysctlState: join(folder, 'state', 'none'), cgroup }
    const clsact = ClsactHooks.ofPackets(interfaces())
    clsact.write(hook, one)
    const foreign = { ifindex: hook.instance, direction: 'egress', handle: 7, priority: 3 } as const
    tcAttach(foreign, one.handle)
    expect(cleanup(options)).toMatchObject({ removed: [`clsact ${hook.key}`], failed: [] })
    expect(tcQuery(foreign)).toBe(one.id)
    execFileSync('tc', ['filter', 'del', 'dev', IFACE, 'egress'])
    clsact.write(hook, one)
    expect(cleanup(options)).toMatchObject({ removed: [`clsact ${hook.key}`, `clsact ${IFACE}`], failed: [] })
    expect(execFileSync('tc', ['qdisc', 'show', 'dev', IFACE], { encoding: 'utf8' })).not.toContain('clsact')
  })
})

describe('XDP programs', () => {
  const places = () => [xdpPlace({ name: IFACE, index: ifindexOf(IFACE) }), xdpPlace({ name: PEER, index: ifindexOf(PEER) })] as const
  hooksContract(() => ({ open: () => new XdpHooks(interfaces()), places: places(), programs: programs(4, 'untracked') }))

  test('a stranger’s program is left alone, and named', async () => {
    const [place] = places()
    const [one] = programs(4, 'untracked')
    const stranger = await foreignProgram('xdp', 2)
    xdpAttach(place.instance, stranger)
    const xdp = new XdpHooks(interfaces())
    expect(xdp.read(place)).toBeUndefined()
    expect(() => {
      xdp.write(place, one)
    }).toThrow(/another's: program \d+ watch/)
    xdp.clear(place.key)
    expect(xdpQuery(place.instance)).toBe(stranger.info().id)
  })

  test('cleanup takes ours', () => {
    const [place] = places()
    const [one] = programs(4, 'untracked')
    new XdpHooks(interfaces()).write(place, one)
    const options = { pins: new Pins(join(folder, 'netplane')), sysctlState: join(folder, 'state', 'none'), cgroup }
    expect(cleanup(options)).toMatchObject({ removed: [`xdp ${place.key}`], failed: [] })
    expect(xdpQuery(place.instance)).toBeUndefined()
  })
})

describe('cgroup links', () => {
  hooksContract(() => ({
    open: () => new CgroupLinks(pins(), cgroup),
    places: [cgroupPlace('connect4'), cgroupPlace('sendmsg4')],
    programs: programs(2, 'connect4', 'sendmsg4'),
  }))
})

describe('cgroup attachments without links', () => {
  hooksContract(() => ({
    open: () => new CgroupAttachments(cgroup),
    places: [cgroupPlace('connect4'), cgroupPlace('connect6')],
    programs: programs(2, 'connect4', 'connect6'),
  }))
})

test('attachments as the loop uses them: adopted by the next agent, never twice', () => {
  const [one] = programs(0, 'from_host')
  const wanted = hooks().map((place) => ({ place, program: one }))
  const start = () => {
    const attachments = new Attachments({
      name: 'hooks',
      hooks: hasTcx() ? new TcxHooks(pins()) : ClsactHooks.ofPackets(interfaces()),
      log: silentLog,
    })
    attachments.setDesired(wanted)
    return { done: attachments.writes.apply().done, adopted: attachments.adopted }
  }
  expect(start()).toEqual({ done: 2, adopted: 0 })
  expect(start()).toEqual({ done: 0, adopted: 2 })
  expect(cgroupQuery(cgroup, 'connect4')).toEqual([])
})
