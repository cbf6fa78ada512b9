// SPDX-License-Identifier: Apache-2.0
/** The data plane without an agent: passes one by one, with real programs and maps, where things fail. Layer: test. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { BpfProgram, ifindexOf, xdpAttach } from '#native'
import { parseAddr, parseCidr } from '#lib/base/ip.ts'
import { Health } from '#lib/obs/health.ts'
import { silentLog } from '#lib/obs/log.ts'
import type { DesiredChange, DesiredNode } from '#agent/compile/desired.ts'
import { NO_SET, type HostValue, type PolicyStep } from '#agent/compile/policy/tables.ts'
import { cgroup2Mount } from '#agent/dataplane/attach/cgroup.ts'
import { kernelHooks } from '#agent/dataplane/attach/kernel-hooks.ts'
import { Dataplane } from '#agent/dataplane/dataplane.ts'
import { PinnedGenerations } from '#agent/dataplane/pinned-generations.ts'
import { probeFeatures } from '#agent/dataplane/programs/kernel-features.ts'
import { pinName } from '#agent/dataplane/attach/hook.ts'
import { objectFileName } from '#agent/dataplane/programs/objects.ts'
import { pinnedRoom } from '#agent/dataplane/programs/shared-maps.ts'
import { Pins } from '#agent/dataplane/pins.ts'
import { NetlinkExchange } from '#agent/interfaces/netlink/exchange.ts'
import type { Interface } from '#agent/interfaces/table.ts'
import { elfSections } from '../../support/elf.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { FakeNetlink } from '../../support/fakes/fake-netlink.ts'
import { anInterface } from '../../support/interfaces.ts'
import { KNOBS, SIZES } from '../../support/knobs.ts'
import { objectPath } from '../../../testkit/packets/objects.ts'

/** between one that stands by and the next */
const STANDBY_MS = 100
const features = probeFeatures()
const DEVICE = 'np-generation'
const XDP = 6
/** `r0 = 2; exit` */
const PASS = Buffer.from('b7000000020000009500000000000000', 'hex')

const NO_SETS: HostValue['sets'] = {
  untrackedIngress: NO_SET,
  untrackedEgress: NO_SET,
  earlyIngress: NO_SET,
  forwardIngress: NO_SET,
  forwardEgress: NO_SET,
  normalIngress: NO_SET,
  normalEgress: NO_SET,
}
/** Has rules for every packet that comes in. */
const UNTRACKED: HostValue = {
  interfaceName: DEVICE,
  addrs: [],
  sets: { ...NO_SETS, untrackedIngress: '00000000000000aa' },
  staged: NO_SETS,
}

const NODE: DesiredNode = {
  knobs: KNOBS,
  mapSizes: SIZES,
  workloads: [],
  host: { addresses: [], elsewhere: [], pattern: undefined, excluded: '' },
  nodePortAddresses: [],
  routes: [],
  tunnelled: false,
  healthChecks: [],
  sysctls: {},
  cgroup: undefined,
}

class Netlink extends FakeNetlink {
  fails = false

  override send(bytes: Uint8Array): void {
    if (this.fails) throw new Error('no answer')
    super.send(bytes)
  }
}

let folder: string
let objects: string
let pins: Pins
let clock: FakeClock
let netlink: Netlink
let health: Health
let dataplane: Dataplane
let node: DesiredNode
let whole: DesiredChange
/** what the next pass is given */
let change: DesiredChange | undefined
let devices: readonly Interface[]
/** how often programs were loaded, or refused */
let loads: number
const cleanups: (() => void)[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-dataplane-'))
  cleanups.push(() => {
    rmSync(folder, { recursive: true })
  })
  objects = join(folder, 'objects')
  cpSync(dirname(objectPath('tc')), objects, { recursive: true, filter: (path) => !/\.[ch]$/.test(path) })
  const bpffs = mkdtempSync('/sys/fs/bpf/np-test-')
  const cgroup = mkdtempSync(join(cgroup2Mount(readFileSync('/proc/self/mounts', 'utf8')) ?? '', 'netplane-test-'))
  pins = new Pins(join(bpffs, 'netplane'))
  clock = new FakeClock()
  netlink = new Netlink()
  health = new Health(() => clock.wall())
  devices = []
  loads = 0
  node = { ...NODE, cgroup }
  want(node)
  const interfaces = { all: () => devices, byName: (name: string) => devices.find((one) => one.name === name), local: () => [] }
  dataplane = new Dataplane({
    generations: new PinnedGenerations({ pins, objects, features, interfaces, clock }),
    hooks: kernelHooks(pins.links, interfaces),
    interfaces,
    netlink: new NetlinkExchange(netlink),
    features,
    sysctls: { stateFile: join(folder, 'sysctls') },
    otherProxy: () => Promise.resolve(false),
    onFirst: () => Promise.resolve(),
    onLoaded: () => {
      loads++
    },
    clock,
    log: silentLog,
    health,
    requestResync: () => {
      change = whole
    },
  })
  cleanups.push(
    () => {
      rmdirSync(cgroup)
    },
    () => {
      rmSync(bpffs, { recursive: true })
    },
    () => {
      dataplane[Symbol.dispose]()
    },
  )
})

afterEach(async () => {
  await dataplane.current.finish()
  for (const cleanup of cleanups.splice(0).reverse()) cleanup()
})

function want(wanted: DesiredNode, of: Partial<Pick<DesiredChange, 'fragments' | 'policy'>> = {}): void {
  whole = { fragments: [], node: wanted, policy: [], complete: true, ...of }
  change = whole
}

function pass(): Promise<number | undefined> {
  if (change !== undefined) dataplane.setDesired(change)
  change = undefined
  return dataplane.pass()
}

/** As long as there is something to do at once; returns the ms after which there is again. */
/** Until nothing is due at once, and a program stands by at each hook. */
async function passes(): Promise<number | undefined> {
  for (let count = 0; count < 12; count++) {
    const again = await pass()
    if (again !== 0 && again !== STANDBY_MS) return again
  }
  return 0
}

function unmet(): readonly string[] {
  return health
    .report()
    .conditions.filter(({ ok }) => !ok)
    .map(({ name }) => name)
}

describe('a setting whose programs are refused', () => {
  const file = (): string => join(objects, objectFileName('tc', features))

  beforeEach(async () => {
    await passes()
    writeFileSync(file(), 'no object')
    want({ ...node, knobs: { ...node.knobs, dsr: true } })
    await passes()
    await dataplane.current.finish()
    expect([await passes(), unmet()]).toEqual([500, ['dataplane.programs']])
  })

  test('a setting that is taken back is no reason to try again', async () => {
    want(node)
    expect([await passes(), unmet()]).toEqual([undefined, []])
  })

  test('a setting that is taken back makes no other setting wait', async () => {
    want(node)
    await passes()
    const before = dataplane.loaded
    copyFileSync(objectPath('tc', features), file())
    want({ ...node, knobs: { ...node.knobs, dsr: true } })
    await passes()
    await dataplane.current.finish()
    expect([await passes(), unmet()]).toEqual([undefined, []])
    expect(dataplane.loaded).not.toBe(before)
  })

  test('is tried again, and nothing else is due meanwhile', async () => {
    copyFileSync(objectPath('tc', features), file())
    clock.advance(500)
    expect(await passes()).toBeUndefined()
    await dataplane.current.finish()
    expect([await passes(), unmet()]).toEqual([undefined, []])
  })
})

test('rows outlive a first look that fails, and programs that come before the next', async () => {
  const cidr = parseCidr('10.1.0.0/16')
  const row = { table: 'routes', key: { cidr }, value: { node: parseAddr('192.0.2.2') } } as const
  const fragments = [{ owner: 'Node/n2', rows: [row] }]
  netlink.fails = true
  want(node, { fragments })
  expect([await passes(), unmet()]).toEqual([1000, ['dataplane.read-back', 'policy.host-endpoints']])
  want({ ...node, knobs: { ...node.knobs, dsr: true } }, { fragments })
  change = { ...whole, fragments: [], complete: false }
  await passes()
  await dataplane.current.finish()
  netlink.fails = false
  expect([await passes(), unmet()]).toEqual([undefined, []])
  expect(dataplane.loaded?.tables.routes).toMatchObject({ size: 1, known: 1 })
})

test.each([
  ['tc', 'tc'],
  ['xdp', 'xdp'],
  ['connect', 'cgroup/connect4'],
] as const)('programs of %s that are refused leave flows in the map that the old ones write to', async (name, section) => {
  await passes()
  const [file, path] = [readFileSync(objectPath(name, features)), join(objects, objectFileName(name, features))]
  // no instruction has this code, which only the verifier notices
  for (const [at, code] of elfSections(file)) if (at === section) code.fill(0xff, 0, 8)
  writeFileSync(path, file)
  want({ ...node, mapSizes: { ...node.mapSizes, conntrack: 3000 } })
  await passes()
  await dataplane.current.finish()
  expect([await passes(), unmet(), pinnedRoom(pins)]).toEqual([500, ['dataplane.programs'], 2000])
  copyFileSync(objectPath(name, features), path)
  clock.advance(500)
  await passes()
  await dataplane.current.finish()
  expect([await passes(), unmet(), pinnedRoom(pins)]).toEqual([undefined, [], 3000])
})

test('others have a turn between the rows of two owners, once the time of a slice is over', async () => {
  await passes()
  const owners = 20
  let [turn, isOver] = [0, false]
  const next = (): void => {
    turn++
    if (!isOver) setImmediate(next)
  }
  const turns = new Set<number>()
  const fragments = Array.from({ length: owners }, (_, at) => ({
    owner: `Node/n${at}`,
    get rows() {
      turns.add(turn)
      clock.advance(1000)
      return []
    },
  }))
  want(node, { fragments })
  next()
  await pass()
  isOver = true
  expect(turns.size).toBeGreaterThanOrEqual(owners)
})

test('policy that filled a map and is taken back leaves nothing to fail', async () => {
  const [set, room] = ['00000000000000aa', 65_536]
  const rows = Array.from({ length: room + 1 }, (_, index) => ({ table: 'rules', key: { set, index }, value: { number: 1 } }) as const)
  const say = (step: PolicyStep): void => {
    change = { fragments: [], node: undefined, policy: [step], complete: false }
  }
  await passes()
  say({ kind: 'add', rows })
  await passes()
  expect([unmet(), dataplane.loaded?.tables.rules.known]).toEqual([['dataplane.policy'], room])
  say({ kind: 'delete', rows })
  await passes()
  expect([await passes(), unmet(), dataplane.loaded?.tables.rules.known]).toEqual([undefined, [], 0])
})

describe('another setting', () => {
  const other = (): DesiredNode => ({ ...node, knobs: { ...node.knobs, dsr: true } })
  const third = (): DesiredNode => ({ ...node, knobs: { ...node.knobs, overlay: true } })
  /** no struct holds such a row */
  const refused: PolicyStep = {
    kind: 'reassign',
    rows: [{ table: 'nets', key: { cidr: parseCidr('10.9.0.0/16') }, value: { identity: 2 ** 40 } }],
  }

  /** A device of the network whose programs are ours. */
  async function withDevice(): Promise<void> {
    execFileSync('ip', ['link', 'add', DEVICE, 'type', 'veth', 'peer', 'name', `${DEVICE}p`])
    cleanups.push(() => {
      execFileSync('ip', ['link', 'del', DEVICE])
    })
    devices = [anInterface({ index: ifindexOf(DEVICE), name: DEVICE, addresses: ['192.0.2.1/24'] })]
    node = { ...node, host: { ...node.host, pattern: `^${DEVICE}$`, excluded: '^lo$' } }
    want(node)
    await passes()
  }

  test('old programs stay pinned while hooks of devices wait for policy, and go when none runs them', async () => {
    await withDevice()
    const [before] = pins.generations()
    expect(dataplane.devices.list().filter(({ use }) => use === 'host')).toHaveLength(1)
    want(other(), { policy: [refused] })
    await passes()
    await dataplane.current.finish()
    await passes()
    expect(unmet()).toContain('dataplane.policy')
    expect([pins.generations().length, pins.generations().includes(before ?? ''), dataplane.current.settled]).toEqual([2, true, false])
    want(other())
    expect([await passes(), unmet(), pins.generations().length, dataplane.current.settled]).toEqual([undefined, [], 1, true])
    expect(pins.generations()).not.toContain(before)
  })

  /** Has programs for the other setting loaded, and taken up by a single pass. */
  async function takeUp(): Promise<void> {
    want(other(), { policy: whole.policy })
    await pass()
    await dataplane.current.finish()
    expect(await pass(), 'asks for everything').toBe(0)
    await pass()
  }

  const state = (): readonly [unmet: readonly string[], generations: number, settled: boolean] => {
    return [unmet(), pins.generations().length, dataplane.current.settled]
  }

  test('old programs stay pinned while connections are made by some of them', async () => {
    await passes()
    await takeUp()
    expect(state(), 'of eight hooks a pass writes four').toEqual([[], 2, false])
    expect([await passes(), ...state()]).toEqual([undefined, [], 1, true])
  })

  test('old programs stay pinned while a hook cannot be cleared', async () => {
    const stuck = join(pins.links, pinName('np-gone/ingress'))
    mkdirSync(stuck, { recursive: true })
    await passes()
    await takeUp()
    await passes()
    expect(state()).toEqual([['dataplane.hooks.remove'], 2, false])
    rmdirSync(stuck)
    expect([await passes(), ...state()]).toEqual([undefined, [], 1, true])
  })

  test('old programs stay pinned while a foreign program has the XDP hook', async () => {
    await withDevice()
    const stranger = BpfProgram.load({ type: XDP, instructions: PASS })
    cleanups.push(() => {
      stranger.close()
    })
    xdpAttach(ifindexOf(DEVICE), stranger)
    want(node, { policy: [{ kind: 'switch', rows: [{ table: 'hosts', key: { endpoint: 'HostEndpoint/one' }, value: UNTRACKED }] }] })
    await passes()
    await takeUp()
    await passes()
    expect(state()).toEqual([['dataplane.xdp'], 2, false])
    xdpAttach(ifindexOf(DEVICE), undefined)
    expect([await passes(), ...state()]).toEqual([undefined, [], 1, true])
  })

  test('programs that come while those before them settle keep their pins', async () => {
    await passes()
    want(other())
    await passes()
    await dataplane.current.finish()
    want(third())
    // takes up those for the other, and begins with those for the third
    await passes()
    await dataplane.current.finish()
    await dataplane.current.settle()
    const [loaded, waiting] = [dataplane.loaded, pins.generations().length]
    expect([waiting, dataplane.current.settled]).toEqual([3, false])
    expect([await passes(), unmet(), pins.generations().length, dataplane.current.settled]).toEqual([undefined, [], 1, true])
    expect(dataplane.loaded).not.toBe(loaded)
    expect(dataplane.current.checkPins()).toEqual([])
  })
})

test('a flow table that could not grow stays as it is, without a pause in which to try again, until it is to grow once more', async () => {
  const [path, good] = [join(objects, objectFileName('tc', features)), objectPath('tc', features)]
  await passes()
  for (let attempt = 1; attempt <= 2; attempt++) {
    writeFileSync(path, 'no object')
    expect(dataplane.current.grow()).toBe(true)
    expect(dataplane.current.grow(), 'it is to grow already').toBe(true)
    await passes()
    await dataplane.current.finish()
    expect([await passes(), unmet(), pinnedRoom(pins), loads]).toEqual([undefined, [], 2000, attempt + 1])
  }
  copyFileSync(good, path)
  expect(dataplane.current.grow()).toBe(true)
  await passes()
  await dataplane.current.finish()
  expect([await passes(), unmet(), pinnedRoom(pins), pins.generations().length]).toEqual([undefined, [], 4000, 1])
})
