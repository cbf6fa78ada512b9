// SPDX-License-Identifier: Apache-2.0
/** The shim that runtimes run, as it is and with sanitizers, and the socket that it asks at. RUNS=… for a long look.
 * Layer: test. */
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, mkdtempSync, openSync, rmSync, statSync, writeSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'
import { isObject } from '#lib/base/object.ts'
import { CniServer } from '#agent/cni/server.ts'
import { lcg } from '../../../support/lcg.ts'

const SHIM = join(packageRoot(), 'build', 'netplane-cni')
const SANITIZED = join(packageRoot(), 'build', 'sanitized', 'netplane-cni')
/** it ends after one call, and gives back nothing before */
const OPTIONS = { ASAN_OPTIONS: 'detect_leaks=0' }
const RUNS = Number(process.env['RUNS'] ?? 40)

interface Ended {
  readonly status: number | null
  readonly output: string
}

let folder: string
let socket: string
let server: CniServer
let lines: string[]
let answer: { readonly status: 0 | 1; readonly output: string }

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-shim-'))
  socket = join(folder, 'cni.sock')
  lines = []
  answer = { status: 0, output: '{"good": true}' }
  const call = (line: string) => {
    lines.push(line)
    return Promise.resolve(answer)
  }
  server = new CniServer({ path: socket, call })
  await server.start()
})

afterEach(async () => {
  await server[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

/** Not in this thread: the server is in it. */
function run(program: string, input: string | Buffer, environment: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(program, { env: { ...OPTIONS, CNI_COMMAND: 'ADD', ...environment } }, (_, output) => {
      resolve({ status: child.exitCode, output })
    })
    child.stdin?.on('error', () => undefined).end(input)
  })
}

function config(more: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ cniVersion: '1.0.0', name: 'netplane', args: { socket: '/not/this' }, socket, ...more })
}

describe.each([
  ['the shim', SHIM],
  ['the shim with sanitizers', SANITIZED],
])('%s', (_, program) => {
  const shim = (input: string | Buffer, environment?: Readonly<Record<string, string>>) => run(program, input, environment)

  test("the shim passes its input on to the agent, and prints the agent's answer", async () => {
    const environment = { CNI_CONTAINERID: 'c"1\n', CNI_NETNS: '/n', CNI_IFNAME: 'eth0', CNI_ARGS: 'a=b;c=\\d', CNI_PATH: '/p' }
    const input = `\n${config({ text: 'ünï "quoted"\u0001' })}\n`
    expect(await shim(input, environment)).toEqual({ status: 0, output: '{"good": true}' })
    expect(lines.map((line): unknown => JSON.parse(line))).toEqual([
      { command: 'ADD', containerId: 'c"1\n', netns: '/n', ifname: 'eth0', args: 'a=b;c=\\d', path: '/p', config: input },
    ])
    answer = { status: 1, output: '{"code": 7}' }
    expect(await shim(config())).toEqual({ status: 1, output: '{"code": 7}' })
  })

  test('the shim says itself which versions there are', () => {
    const { status, stdout } = spawnSync(program, { env: { ...OPTIONS, CNI_COMMAND: 'VERSION' }, input: '' })
    expect([status, JSON.parse(stdout.toString())]).toEqual([
      0,
      { cniVersion: '1.1.0', supportedVersions: ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] },
    ])
  })

  test('a runtime that does not read its answer does not keep it', async () => {
    execFileSync('mkfifo', [join(folder, 'full')])
    const full = openSync(join(folder, 'full'), constants.O_RDWR | constants.O_NONBLOCK)
    try {
      expect(() => {
        for (;;) writeSync(full, Buffer.alloc(4096))
      }).toThrow('EAGAIN')
      const blocking = openSync(join(folder, 'full'), 'w')
      const child = spawn(program, { env: { ...OPTIONS, CNI_COMMAND: 'VERSION' }, stdio: ['ignore', blocking, 'ignore'] })
      closeSync(blocking)
      expect(await once(child, 'exit')).toEqual([null, 'SIGALRM'])
    } finally {
      closeSync(full)
    }
  })

  test('without an agent the runtime is to try again later', async () => {
    await server[Symbol.asyncDispose]()
    const { status, output } = await shim(config())
    expect([status, JSON.parse(output)]).toMatchObject([1, { cniVersion: '1.0.0', code: 11 }])
    expect(output).toContain(`the agent of this node does not listen at ${socket}`)
  })

  test.each([
    ['{"socket": "/a/b", "cniVersion": "0.4.0"}', '0.4.0', '/a/b'],
    ['{"x": [{"socket": "/no"}], "y": "socket", "socket" : "/a/b"}', '1.1.0', '/a/b'],
    ['{"y": "\\"socket\\": \\"/no\\"", "socket":\n"/a/b"}', '1.1.0', '/a/b'],
    ['{"cniVersion": "0.\\"4", "socket": "/a/b"}', '1.1.0', '/a/b'],
    ['', '1.1.0', '/run/netplane/cni.sock'],
    ['{"socket": 5}', '1.1.0', '/run/netplane/cni.sock'],
  ])('the shim finds in %j the version %s and the socket %s', async (input, cniVersion, path) => {
    const { output } = await shim(input)
    expect(JSON.parse(output)).toMatchObject({ cniVersion, code: 11 })
    expect(output).toContain(` ${path}: `)
  })

  test('whatever it is given, it ends as plugins end', async () => {
    const random = lcg(7)
    const bytes = (): Buffer => Buffer.from(Array.from({ length: random(60) }, () => random(256)))
    const pieces = [Buffer.from(config()), ...['{', '}', '"', '\\', '"socket":', '"', '[', ',', '\0'].map((text) => Buffer.from(text))]
    const piece = (): Buffer => (random(3) === 0 ? bytes() : (pieces[random(pieces.length)] ?? bytes()))
    for (let at = 0; at < RUNS; at++) {
      const whole = Buffer.concat(Array.from({ length: random(6) }, piece))
      const text = bytes().toString('latin1').replaceAll('\0', '')
      const { status, output } = await shim(whole, { CNI_CONTAINERID: text, CNI_ARGS: text, CNI_COMMAND: text })
      expect(status === 0 || status === 1).toBe(true)
      expect(isObject(JSON.parse(output))).toBe(true)
    }
    for (const line of lines) expect(isObject(JSON.parse(line))).toBe(true)
  })
})

describe('the socket', () => {
  test('is for root alone', () => {
    expect(statSync(socket).mode & 0o777).toBe(0o600)
  })

  test('takes no line without end, and goes on', async () => {
    const client = connect(socket)
    const closed = new Promise((resolve) => client.on('error', () => undefined).once('close', resolve))
    client.write(Buffer.alloc(3 << 20, 'x'))
    await closed
    expect(lines).toEqual([])
    expect((await run(SHIM, config())).status).toBe(0)
  })

  test('still answers after a client has left before its answer', async () => {
    const client = connect(socket)
    await new Promise((resolve) => client.write('{}\n', resolve))
    client.destroy()
    expect((await run(SHIM, config())).status).toBe(0)
    expect(lines).toHaveLength(2)
  })
})
