// SPDX-License-Identifier: Apache-2.0
/** The device that announces the tunnel's port, and the order in which it comes. Layer: test. */
import { constants } from 'node:os'
import { beforeEach, describe, expect, test } from 'vitest'
import type { InterfaceHook, LoadedProgram } from '#agent/dataplane/attach/hook.ts'
import { TUNNEL_DEVICE, TunnelDevice } from '#agent/dataplane/host/tunnel-device.ts'
import { NetlinkExchange, type NetlinkTransport } from '#agent/interfaces/netlink/exchange.ts'
import { decodeLink } from '#agent/interfaces/netlink/link.ts'
import { decodeMessages, encodeMessage, NLMSG_ERROR } from '#agent/interfaces/netlink/message.ts'
import type { Interface } from '#agent/interfaces/table.ts'
import { parsePort, type Port } from '#lib/base/ip.ts'
import { FakeHooks } from '../../../support/fakes/fake-hooks.ts'
import { ListLog } from '../../../support/fakes/list-log.ts'
import { anInterface } from '../../../support/interfaces.ts'

const { EEXIST, EADDRINUSE, EOPNOTSUPP, EPERM } = constants.errno
const PORT = parsePort(4789)
const INDEX = 7
const KEY = `${TUNNEL_DEVICE}/ingress`

/** Does what it is asked to do with our device, but for what it refuses. */
class Kernel implements NetlinkTransport {
  readonly port = 1
  readonly did: string[] = []
  readonly refuses = new Map<string, number>()
  device: Interface | undefined
  others: Interface[] = []
  #answers: Buffer[] = []

  send(bytes: Uint8Array): void {
    for (const { type, seq, payload } of decodeMessages(Buffer.from(bytes))) {
      const link = decodeLink(Buffer.concat([payload.subarray(0, 4), Buffer.of(INDEX, 0, 0, 0), payload.subarray(8)]))
      const what = type === 17 ? 'remove' : link?.up === true ? 'up' : `make ${link?.vxlan?.port ?? ''}`
      const errno = this.refuses.get(what) ?? (type === 17 && this.device === undefined ? constants.errno.ENODEV : 0)
      if (errno === 0) this.#do(what, link?.vxlan)
      const error = Buffer.alloc(20)
      error.writeInt32LE(-errno)
      const answer = encodeMessage({ type: NLMSG_ERROR, flags: 0, seq, payload: error })
      answer.writeUInt32LE(this.port, 12)
      this.#answers.push(answer)
    }
  }

  #do(what: string, vxlan: Interface['vxlan']): void {
    this.did.push(what)
    if (what === 'remove') this.device = undefined
    else if (what === 'up') this.device = this.device && { ...this.device, up: true }
    else this.device = { ...anInterface({ index: INDEX, name: TUNNEL_DEVICE, kind: 'vxlan', up: false }), vxlan }
  }

  receive(): Buffer | undefined {
    return this.#answers.shift()
  }

  receiveWait(): Buffer | undefined {
    return this.receive()
  }

  onReadable(): void {
    // asked only
  }

  close(): void {
    // of no use any more
  }
}

class LoggedHooks extends FakeHooks {
  refusal: Error | undefined
  readonly #did: string[]

  constructor(did: string[]) {
    super()
    this.#did = did
  }

  override write(place: InterfaceHook, program: LoadedProgram): void {
    if (this.refusal !== undefined) throw this.refusal
    this.#did.push(`drop all by ${program.id}`)
    super.write(place, program)
  }
}

let kernel: Kernel
let hooks: LoggedHooks
let log: ListLog
let drift: string[]
let loaded: number | undefined
let device: TunnelDevice
let entered: number
let whyNoChecksums: string | undefined

beforeEach(() => {
  kernel = new Kernel()
  hooks = new LoggedHooks(kernel.did)
  log = new ListLog()
  drift = []
  loaded = 3
  entered = 0
  whyNoChecksums = undefined
  device = start()
})

function start(): TunnelDevice {
  const all = (): readonly Interface[] => [...kernel.others, ...(kernel.device === undefined ? [] : [kernel.device])]
  return new TunnelDevice({
    netlink: new NetlinkExchange(kernel),
    interfaces: { all, byName: (name) => all().find((one) => one.name === name), local: () => [] },
    hooks,
    program: () => (loaded === undefined ? undefined : { id: loaded, handle: undefined as never }),
    log,
    enter: (index) => (entered = index),
    whyNoChecksums,
    onDrift: (lack) => drift.push(lack),
  })
}

/** Passes until nothing is done any more; the kernel tells of each change. Returns the failures of the last. */
function settle(): readonly string[] {
  for (let passes = 0; passes < 10; passes++) {
    device.markStale()
    const { done, failures } = device.apply()
    if (done === 0) return failures.map(({ reason }) => reason)
  }
  throw new Error('it never ends')
}

function want(port: Port | undefined, checksums = false): readonly string[] {
  device.setDesired(port, checksums)
  return settle()
}

function done(): string[] {
  return kernel.did.splice(0)
}

/** all that was said so far */
function whyNot(): readonly unknown[] {
  return log.of('tunnel.unannounced').map(({ reason }) => reason)
}

const other = (port: number, name = 'flannel.1'): Interface => ({
  ...anInterface({ index: 9, name, kind: 'vxlan', up: false }),
  vxlan: { port, external: false },
})

test('the device is made down, then has its program, then is up, and is left alone after that', () => {
  want(PORT)
  expect(done()).toEqual(['make 4789', 'drop all by 3', 'up'])
  settle()
  expect([done(), drift, device.check()]).toEqual([[], [], false])
  expect(log.of('tunnel.announced')).toEqual([{ device: TUNNEL_DEVICE, port: PORT }])
})

test('the next agent takes the device as it is', () => {
  want(PORT)
  done()
  device = start()
  expect([want(PORT), done(), drift]).toEqual([[], [], []])
})

test('the device waits for programs, and gets the program of a new generation while it is up', () => {
  loaded = undefined
  device.setDesired(PORT, false)
  expect(device.pending()).toBe(false)
  loaded = 4
  expect(device.pending()).toBe(true)
  settle()
  loaded = 5
  settle()
  expect([done(), drift]).toEqual([['make 4789', 'drop all by 4', 'up', 'drop all by 5'], []])
})

test('a device of another port is made again; without a tunnel it goes, and comes back', () => {
  want(PORT)
  done()
  hooks.there.clear()
  want(parsePort(4790))
  expect(done()).toEqual(['remove', 'make 4790', 'drop all by 3', 'up'])
  want(undefined)
  expect(done()).toEqual(['remove'])
  hooks.there.clear()
  want(PORT)
  expect([done(), drift]).toEqual([['make 4789', 'drop all by 3', 'up'], []])
})

describe('what strangers change is found and put back', () => {
  const changes: readonly (readonly [string, () => void, readonly string[]])[] = [
    ['is gone', () => (kernel.device = undefined), ['make 4789', 'up']],
    ['is down', () => (kernel.device = kernel.device && { ...kernel.device, up: false }), ['up']],
    ['has another program', () => hooks.there.clear(), ['drop all by 3']],
    [
      'is of another kind or port',
      () => (kernel.device = kernel.device && { ...kernel.device, vxlan: { port: 1, external: true } }),
      ['remove', 'make 4789', 'up'],
    ],
  ]
  test.each(changes)('it %s', (lack, change, repair) => {
    want(PORT)
    done()
    change()
    expect([device.check(), device.pending()]).toEqual([true, true])
    settle()
    expect([drift, done()]).toEqual([[lack], repair])
    expect(device.check()).toBe(false)
  })
})

describe('where the device cannot be made the agent logs that once, and tries again within a minute', () => {
  test('another VXLAN device has the port', () => {
    kernel.others = [other(4790), other(4789, 'vx')]
    expect([want(PORT), done()]).toEqual([[], []])
    kernel.others = []
    expect([settle(), done()]).toEqual([[], []])
    device.tryAgain()
    settle()
    expect(done()).toEqual(['make 4789', 'drop all by 3', 'up'])
    kernel.others = [other(4789, 'late')]
    settle()
    expect([done(), drift]).toEqual([['remove'], []])
    expect(whyNot()).toEqual(['vx has it', 'late has it'])
  })

  test.each([
    { what: 'no module', refused: 'make 4789', errno: EOPNOTSUPP, reason: 'this kernel has no VXLAN devices', does: [] },
    { what: 'a device that is not seen here', refused: 'make 4789', errno: EEXIST, reason: 'another VXLAN device has it', does: [] },
    {
      ...{ what: 'a socket', refused: 'up', errno: EADDRINUSE, reason: 'another socket has it' },
      does: ['make 4789', 'drop all by 3', 'remove'],
    },
  ])('$what', ({ refused, errno, reason, does }) => {
    kernel.refuses.set(refused, errno)
    expect([want(PORT), done()]).toEqual([[], does])
    device.tryAgain()
    expect(settle()).toEqual([])
    expect(whyNot()).toEqual([reason])
    expect(kernel.device).toBeUndefined()
  })

  test('a kernel without filters: the device never goes up', () => {
    hooks.refusal = Object.assign(new Error('tc'), { code: 'ENOENT' })
    expect([want(PORT), done()]).toEqual([[], ['make 4789', 'remove']])
    expect(whyNot()).toEqual(['this kernel has no filters of programs: tc'])
  })

  test('a device of that name that is no VXLAN device', () => {
    kernel.device = anInterface({ index: INDEX, name: TUNNEL_DEVICE, kind: 'dummy' })
    expect([want(PORT), done(), want(undefined), done()]).toEqual([[], [], [], []])
    expect(whyNot()).toEqual([`${TUNNEL_DEVICE} is another program's`])
  })
})

test('what should work and does not is a failure that is tried again', () => {
  kernel.refuses.set('up', EPERM)
  expect(want(PORT)).toEqual([expect.stringContaining('not permitted')])
  expect([device.pending(), hooks.there.get(KEY)?.program]).toEqual([true, 3])
  kernel.refuses.clear()
  expect(settle()).toEqual([])
  expect(kernel.device?.up).toBe(true)
})

describe('by setting our packets leave by the device', () => {
  const refusal = (reason: string): readonly string[] => [
    `bpfTunnelUDPChecksum is Enabled, but packets of the tunnel have no checksum: ${reason}`,
  ]

  test('they do as long as the setting is on and the device is there', () => {
    expect([want(PORT), entered, device.way]).toEqual([[], 0, { port: PORT, hasChecksums: false }])
    expect([want(PORT, true), entered, device.way]).toEqual([[], INDEX, { port: PORT, hasChecksums: true }])
    expect([want(PORT), entered]).toEqual([[], 0])
    want(PORT, true)
    expect([want(undefined, true), entered, device.way]).toEqual([[], 0, undefined])
  })

  test('they do not before the device is up', () => {
    device.setDesired(PORT, true)
    device.apply()
    expect([kernel.device?.up, entered]).toEqual([false, 0])
    settle()
    expect([kernel.device?.up, entered]).toEqual([true, INDEX])
  })

  test('a device that another has made way for ends it, which is a failure until it is back', () => {
    want(PORT, true)
    kernel.others = [other(4789, 'vx')]
    expect([settle(), entered, device.pending()]).toEqual([refusal('vx has it'), 0, true])
    expect(device.way).toEqual({ port: PORT, hasChecksums: false })
    kernel.others = []
    device.tryAgain()
    expect([settle(), entered]).toEqual([[], INDEX])
  })

  test('a kernel that cannot is a failure, and the device is there for its port alone', () => {
    whyNoChecksums = 'too old'
    device = start()
    expect([want(PORT, true), entered, kernel.device?.up]).toEqual([refusal('too old'), 0, true])
    expect(want(PORT)).toEqual([])
  })
})
