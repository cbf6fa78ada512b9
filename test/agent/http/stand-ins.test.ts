// SPDX-License-Identifier: Apache-2.0
/** How long servers on other ports answer for those that are left to a kube-proxy. Layer: test. */
import { expect, test } from 'vitest'
import type { Listener } from '#agent/http/listeners.ts'
import { StandIns } from '#agent/http/stand-ins.ts'
import { silentLog } from '#lib/obs/log.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'

/** A kernel that is told of redirects. */
class Kernel {
  /** each set of redirected ports, and "end" */
  readonly told: (readonly number[] | 'end')[] = []
  readonly listening = new Set<number>()
  ports: ReadonlyMap<number, number> = new Map()
  answer: () => boolean = () => true

  set(ports: ReadonlyMap<number, number>): Promise<boolean> {
    return Promise.resolve().then(() => {
      if (!this.answer()) return false
      this.ports = ports
      this.told.push([...ports.keys()])
      return true
    })
  }

  end(): Promise<boolean> {
    this.told.push('end')
    return Promise.resolve(true)
  }
}

function setup() {
  const [clock, kernel, events] = [new FakeClock(), new Kernel(), new Array<string>()]
  const warn = (_: unknown, event: string): void => void events.push(event)
  const standIns = new StandIns({ clock, log: { ...silentLog, warn }, redirects: kernel, listening: () => kernel.listening })
  const stop = new AbortController()
  const wanted = new Set([1, 2])
  let isOver = false
  const watch = (): void => {
    void standIns.watch({ wanted: () => wanted, signal: stop.signal }).then(() => (isOver = true))
  }
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { clock, kernel, events, standIns, stop, wanted, watch, pass, over: () => isOver }
}

const LISTENERS: readonly [string, Listener][] = [1, 2].map((port) => [
  `of-${port}`,
  { host: undefined, port, pages: () => ({ '*': () => ({ status: 200, type: 'text/plain', body: `page ${port}` }) }) },
])

async function said(port: number | undefined): Promise<string | undefined> {
  return fetch(`http://127.0.0.1:${port}/`).then(
    (answer) => answer.text(),
    () => undefined,
  )
}

test('each port is redirected until a socket listens there, and the servers go a moment after the last', async () => {
  const { kernel, standIns, watch, pass, over } = setup()
  await standIns.open(LISTENERS)
  watch()
  const ports = [...kernel.ports.values()]
  const answers = (): Promise<readonly unknown[]> => Promise.all(ports.map(said))
  expect(await answers()).toEqual(['page 1', 'page 2'])
  await pass(1000)
  expect(kernel.told).toEqual([[1, 2]])
  kernel.listening.add(2)
  await pass(100)
  kernel.listening.add(1)
  await pass(100)
  expect([kernel.told, over()]).toEqual([[[1, 2], [1], []], false])
  await pass(1000)
  expect([await answers(), over()]).toEqual([['page 1', 'page 2'], true])
  await standIns[Symbol.asyncDispose]()
  expect([kernel.told.at(-1), await answers()]).toEqual(['end', [undefined, undefined]])
})

test('a port that is not to be served any more is not redirected either', async () => {
  const { kernel, standIns, watch, pass, wanted } = setup()
  await standIns.open(LISTENERS)
  watch()
  wanted.delete(1)
  await pass(100)
  expect(kernel.told).toEqual([[1, 2], [2]])
  await standIns[Symbol.asyncDispose]()
})

test('an agent that stops ends the redirect at once', async () => {
  const { kernel, standIns, watch, pass, stop, over, events } = setup()
  await standIns.open(LISTENERS)
  watch()
  stop.abort()
  await pass(0)
  await standIns[Symbol.asyncDispose]()
  expect([over(), kernel.told, events]).toEqual([true, [[1, 2], 'end'], []])
})

test('without a port to answer for the kernel is told nothing', async () => {
  const { kernel, standIns, watch, pass, over } = setup()
  await standIns.open([])
  watch()
  await pass(0)
  await standIns[Symbol.asyncDispose]()
  expect([over(), kernel.told]).toEqual([true, []])
})

test.each([
  ['is not there', () => false],
  [
    'refuses',
    () => {
      throw new Error('no')
    },
  ],
])('where the tool %s, the agent logs it once and waits for nothing', async (_, answer) => {
  const { kernel, standIns, watch, pass, over, events } = setup()
  kernel.answer = answer
  await standIns.open(LISTENERS)
  watch()
  await pass(0)
  expect([over(), events]).toEqual([true, ['ports.not-redirected']])
  await standIns[Symbol.asyncDispose]()
})
