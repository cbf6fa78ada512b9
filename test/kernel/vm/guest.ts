// SPDX-License-Identifier: Apache-2.0
/** Runs a program that emulates a machine, keeps its console, and judges from it how the guest ended. Layer: test. */
import { spawn } from 'node:child_process'
import { createWriteStream } from 'node:fs'
import { StringDecoder } from 'node:string_decoder'

export interface GuestOptions {
  readonly program: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** the word the guest's last line carries, so that nothing else can look like it */
  readonly token: string
  readonly log: string
  /** milliseconds until the machine is ended by force */
  readonly timeout: number
}

export interface GuestResult {
  readonly ok: boolean
  readonly passed: number
  readonly failed: number
  /** why it is not ok, when no test says so */
  readonly reason?: string
  /** what the payload wrote, without the kernel's messages before it */
  readonly lines: readonly string[]
  readonly seconds: number
}

/** How long the emulator may take to end by itself after the guest's last line. */
const GRACE_MS = 5000

export async function runGuest(options: GuestOptions): Promise<GuestResult> {
  const started = performance.now()
  const { text, ended } = await runConsole(options)
  return { ...judge(text, options.token, ended), seconds: (performance.now() - started) / 1000 }
}

interface Console {
  readonly text: string
  readonly ended: string
}

function runConsole(options: GuestOptions): Promise<Console> {
  const { promise, resolve, reject } = Promise.withResolvers<Console>()
  const log = createWriteStream(options.log)
  const child = spawn(options.program, [...options.args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...options.env },
    detached: true,
  })
  let text = ''
  let ended = ''
  const end = (why: string): void => {
    ended ||= why
    // The group: virtme-ng's emulator is its grandchild.
    if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGKILL')
  }
  const timers = [setTimeout(() => end(`not done after ${options.timeout / 1000} s`), options.timeout)]
  for (const stream of [child.stdout, child.stderr]) {
    const decoder = new StringDecoder('utf8')
    stream.on('data', (bytes: Buffer) => {
      log.write(bytes)
      const before = text.length
      text += decoder.write(bytes)
      const isOver = exitCode(text, options.token) !== undefined && text.indexOf('\n', before) >= 0
      if (isOver && timers.length === 1) timers.push(setTimeout(() => end('stopped after its last line'), GRACE_MS))
    })
  }
  child.on('error', (error) => reject(new Error(`${options.program} does not start: ${error.message}`)))
  child.on('close', (code, signal) => {
    for (const timer of timers) clearTimeout(timer)
    log.end(() => resolve({ text, ended: ended || `the emulator ended with ${signal ?? code}` }))
  })
  return promise
}

/** Anything short of a tally without failures and the guest's own word that the payload ended with 0 is not ok. */
export function judge(text: string, token: string, ended: string): Omit<GuestResult, 'seconds'> {
  const lines = text.replaceAll('\r', '').split('\n')
  const code = exitCode(text, token)
  const tally = /^(\d+) passed, (\d+) failed$/m.exec(lines.join('\n'))
  const counts = { passed: Number(tally?.[1] ?? 0), failed: Number(tally?.[2] ?? 0), lines: payloadLines(lines) }
  const bad = (reason: string): Omit<GuestResult, 'seconds'> => ({ ...counts, ok: false, reason })
  if (code === undefined) return bad(`no exit code came out (${ended})`)
  if (tally === null) return bad(`the payload gave no tally and ended with ${code}`)
  if (code !== '0' && counts.failed === 0) return bad(`the payload ended with ${code}`)
  if (counts.passed === 0) return bad('no test was run')
  return { ...counts, ok: counts.failed === 0 && code === '0' }
}

function exitCode(text: string, token: string): string | undefined {
  const match = new RegExp(`guest-exit ${token} (\\S+)[\\r\\n]`).exec(text)
  return match?.[1]
}

function payloadLines(lines: readonly string[]): string[] {
  return lines.filter((line) => /^(FAIL|guest:|facts:) ?/.test(line))
}
