// SPDX-License-Identifier: Apache-2.0
/** Runs a program that emulates a machine, keeps its console, and judges from it how the guest ended. Layer: test. */
import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, readdirSync, writeSync } from 'node:fs'
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
  /** facts and failures; where there is no other sign of what went wrong, the end of the console as well */
  readonly lines: readonly string[]
  readonly seconds: number
  /** of processor time */
  readonly cpu: number
}

const LAST_LINES = 25

export async function runGuest(options: GuestOptions): Promise<GuestResult> {
  const started = performance.now()
  const { text, ended, cpu } = await runConsole(options)
  return { ...judge(text, options.token, ended), seconds: (performance.now() - started) / 1000, cpu }
}

interface Console {
  readonly text: string
  readonly ended: string
  readonly cpu: number
}

function runConsole(options: GuestOptions): Promise<Console> {
  const { promise, resolve, reject } = Promise.withResolvers<Console>()
  const log = openSync(options.log, 'w')
  // One pipe for both outputs: read from two, lines would be torn. A group of its own, as virtme-ng's emulator is its
  // grandchild.
  const args = ['-c', 'exec "$@" 2>&1', 'sh', options.program, ...options.args]
  const child = spawn('/bin/sh', args, { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, ...options.env }, detached: true })
  let text = ''
  let ended = ''
  let cpu = 0
  const end = (why: string): void => {
    ended ||= why
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
    cpu = cpuSeconds(child.pid)
    process.kill(-child.pid, 'SIGKILL')
  }
  const onExit = (): void => end('this program ended')
  process.once('exit', onExit)
  const timer = setTimeout(() => end(`not done after ${options.timeout / 1000} s`), options.timeout)
  const decoder = new StringDecoder('utf8')
  child.stdout.on('data', (bytes: Buffer) => {
    writeSync(log, bytes)
    text += decoder.write(bytes)
    if (exitCode(text, options.token) !== undefined) end('its last line came')
  })
  child.on('error', reject)
  child.on('close', (code, signal) => {
    clearTimeout(timer)
    process.off('exit', onExit)
    closeSync(log)
    resolve({ text, cpu, ended: ended || `the emulator ended with ${signal ?? code ?? 'nothing'}` })
  })
  return promise
}

/** How long the processes of a group have run. */
function cpuSeconds(group: number): number {
  let ticks = 0
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      // behind the name, which may have spaces: state, parent, group, …, user time, system time
      const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ').at(-1)?.split(' ') ?? []
      if (Number(fields[2]) === group) ticks += Number(fields[11]) + Number(fields[12])
    } catch {
      // it has ended
    }
  }
  return ticks / 100
}

/** Anything short of a tally without failures and the guest's own word that the payload ended with 0 is not ok. */
export function judge(text: string, token: string, ended: string): Omit<GuestResult, 'seconds' | 'cpu'> {
  const lines = text.replaceAll('\r', '').split('\n')
  const code = exitCode(text, token)
  const tally = /^(\d+) passed, (\d+) failed$/m.exec(lines.join('\n'))
  const counts = { passed: Number(tally?.[1] ?? 0), failed: Number(tally?.[2] ?? 0), lines: payloadLines(lines) }
  const bad = (reason: string): Omit<GuestResult, 'seconds' | 'cpu'> => ({
    ...counts,
    ok: false,
    reason,
    lines: [...counts.lines, ...lastWords(lines)],
  })
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

function lastWords(lines: readonly string[]): string[] {
  const written = lines.filter((line) => line.trim() !== '')
  return ['its console ends:', ...written.slice(-LAST_LINES).map((line) => `  ${line}`)]
}

/** The payload's own lines; those that begin with a space go on from the one before. */
function payloadLines(lines: readonly string[]): string[] {
  let isIn = false
  return lines.filter((line) => {
    isIn = /^(FAIL|guest:|facts:) ?/.test(line) || (isIn && line.startsWith(' '))
    return isIn
  })
}
