// SPDX-License-Identifier: Apache-2.0
/** When services are asked, and what the answers mean. Layer: test. */
import { beforeEach, expect, test } from 'vitest'
import { parseAddr, parsePort, formatAddr } from '#lib/base/ip.ts'
import type { DataplaneMode } from '#lib/model/node.ts'
import { NotYetError } from '#lib/base/errors.ts'
import { silentLog } from '#lib/obs/log.ts'
import type { Ask, Place } from '#agent/proof/asks.ts'
import { NodeMode, type PodClient } from '#agent/proof/node-mode.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'

const RUNNING = new AbortController().signal
const ENDPOINT = '10.0.1.1'
const SERVICE = '10.96.0.1'

function place(addr: string): Place {
  return { addr: parseAddr(addr), port: parsePort(80) }
}

const ask: Ask = {
  ...{ ...place(SERVICE), service: 'shop/db', how: 'connect', isNodePort: false },
  ...{ affinitySeconds: undefined, endpoints: [place(ENDPOINT)] },
}

let clock: FakeClock
let written: DataplaneMode | undefined
let silent: readonly string[]
let asked: string[]
/** the same of a pod */
let podSilent: readonly string[]
let podAsked: string[]
/** why there is none; undefined: there is one, until it is closed */
let noPod: string | undefined
let pods: number
let isRuled: boolean
let asks: readonly Ask[]
/** of a service, in the flow table */
let datagramsGoTo: string
let mode: NodeMode

beforeEach(() => {
  clock = new FakeClock()
  written = 'BPF'
  silent = []
  asked = []
  podSilent = []
  podAsked = []
  noPod = undefined
  pods = 0
  isRuled = false
  datagramsGoTo = ENDPOINT
  asks = [ask]
  mode = new NodeMode({
    ...{ clock, log: silentLog, written: () => written, asks: () => asks },
    endpointsOf: (one) => asks.find(({ addr }) => addr === one.addr)?.endpoints ?? [],
    ask: ({ addr, port }, how, socketOf) => {
      const text = formatAddr(addr)
      if (socketOf === undefined) asked.push(text)
      else podAsked.push(`${text}:${port}`)
      const isSilent = (socketOf === undefined ? silent : podSilent).includes(text)
      return Promise.resolve(isSilent ? undefined : { endpoint: ledTo(text, how) })
    },
    openPod: () => (noPod === undefined ? Promise.resolve(pod()) : Promise.reject(new NotYetError(noPod))),
  })
})

/** As a flow table says it. */
function ledTo(addr: string, how: Ask['how']): Place | undefined {
  return how === 'datagram' ? place(addr === SERVICE ? datagramsGoTo : addr) : undefined
}

function pod(): PodClient {
  pods++
  return {
    isRuled,
    socketOf: () => -1,
    [Symbol.asyncDispose]: () => {
      pods--
      return Promise.resolve()
    },
  }
}

/** Until it has asked all it would. */
async function tick(): Promise<void> {
  const ticked = mode.tick(RUNNING)
  const isOver = ticked.then(() => true)
  while (!(await Promise.race([isOver, new Promise<false>((resolve) => setImmediate(resolve, false))]))) clock.advance(250)
}

function outcome(): unknown {
  const { mode: name, proof } = mode.current ?? {}
  return [name, proof?.asked, proof?.answered, proof?.failed]
}

test('services are asked once the mode is written, and once', async () => {
  written = undefined
  await tick()
  expect(mode.current).toBeUndefined()
  written = 'BPF'
  await tick()
  await tick()
  expect([outcome(), asked, podAsked, pods]).toEqual([['BPF', 2, 2, []], [SERVICE], [`${SERVICE}:80`], 0])
})

test('another mode is another time, and asked about anew', async () => {
  await tick()
  const since = mode.current?.since ?? 0
  clock.advance(60_000)
  written = 'Standard'
  await tick()
  expect(outcome()).toEqual(['Standard', 2, 2, []])
  expect(mode.current?.since).toBe(since + 60_000)
})

test('a service that is silent though its endpoint answers has failed, and is asked again until it answers', async () => {
  silent = [SERVICE]
  await tick()
  const failed = ['Service shop/db, TCP 10.96.0.1:80: no answer, though its endpoints answer']
  expect(outcome()).toEqual(['BPF', 2, 1, failed])
  silent = []
  await tick()
  expect(outcome()).toEqual(['BPF', 2, 1, failed])
  clock.advance(10_000)
  await tick()
  expect(outcome()).toEqual(['BPF', 2, 2, []])
})

test('a service whose endpoints are silent is not counted', async () => {
  silent = podSilent = [SERVICE, ENDPOINT]
  await tick()
  expect(outcome()).toEqual(['BPF', 0, 0, []])
})

test('what was found in one mode is no proof of the next', async () => {
  silent = [SERVICE]
  const ticked = mode.tick(RUNNING)
  await new Promise((resolve) => setImmediate(resolve))
  written = 'Standard'
  const isOver = ticked.then(() => true)
  while (!(await Promise.race([isOver, new Promise<false>((resolve) => setImmediate(resolve, false))]))) clock.advance(250)
  expect(mode.current?.proof).toBeUndefined()
})

test('a service that is silent to a pod alone has failed, though the node has its answer', async () => {
  podSilent = [SERVICE]
  await tick()
  expect(outcome()).toEqual(['BPF', 2, 1, ['Service shop/db, TCP 10.96.0.1:80 from a pod: no answer, though its endpoints answer']])
  expect(pods).toBe(0)
})

test('where no pod can be had the node asks alone and says so, and a pod asks once there is one', async () => {
  noPod = 'no block'
  await tick()
  expect([outcome(), mode.current?.proof?.fromPod]).toEqual([['BPF', 1, 1, []], { asked: 0, answered: 0, reason: 'no block' }])
  clock.advance(59_000)
  noPod = undefined
  await tick()
  expect(outcome()).toEqual(['BPF', 1, 1, []])
  clock.advance(1000)
  await tick()
  expect([outcome(), mode.current?.proof?.fromPod]).toEqual([['BPF', 2, 2, []], { asked: 1, answered: 1, reason: undefined }])
  expect(asked, 'the node does not ask again').toEqual([SERVICE])
})

test('without services no pod is made', async () => {
  asks = []
  noPod = 'not to be asked for'
  await tick()
  expect(mode.current?.proof?.fromPod.reason).toBeUndefined()
})

test('rules that may keep the pod from one endpoint of several make no failure, nor do node ports under rules', async () => {
  const other = '10.0.1.2'
  asks = [
    { ...ask, endpoints: [place(ENDPOINT), place(other)] },
    { ...ask, isNodePort: true, ...place('192.0.2.1'), port: parsePort(30080) },
  ]
  isRuled = true
  podSilent = [SERVICE, '192.0.2.1', other]
  await tick()
  expect([outcome(), podAsked.filter((text) => text.endsWith(':30080'))]).toEqual([['BPF', 2, 2, []], []])
  isRuled = false
  written = 'Standard'
  await tick()
  expect(mode.current?.proof?.failed).toHaveLength(2)
})

test("a datagram is a pod's alone, and answered where the flow table leads it to an endpoint", async () => {
  asks = [{ ...ask, how: 'datagram' }]
  await tick()
  expect([outcome(), asked, podAsked]).toEqual([['BPF', 1, 1, []], [], [`${SERVICE}:80`]])
})

test('a datagram whose entry in the flow table leads elsewhere has failed, and is not counted where endpoints have none', async () => {
  asks = [{ ...ask, how: 'datagram' }]
  datagramsGoTo = SERVICE
  await tick()
  const text = 'Service shop/db, UDP 10.96.0.1:80 from a pod: not led to an endpoint, though these are reached'
  expect(outcome()).toEqual(['BPF', 1, 0, [text]])
  podSilent = [SERVICE, ENDPOINT]
  clock.advance(10_000)
  await tick()
  expect(outcome()).toEqual(['BPF', 0, 0, []])
})

test('node ports are named by their protocol, for others to ask', async () => {
  const at = { ...place('192.0.2.1'), isNodePort: true }
  asks = [
    { ...ask, ...at, port: 30080 },
    { ...ask, ...at, port: 30053, how: 'name' },
    { ...ask, ...at, port: 30099, how: 'datagram' },
  ]
  datagramsGoTo = ENDPOINT
  await tick()
  expect([mode.current?.proof?.nodePorts, mode.current?.proof?.udpNodePorts]).toEqual([['192.0.2.1:30080'], ['192.0.2.1:30053']])
})
