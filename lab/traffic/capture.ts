// SPDX-License-Identifier: Apache-2.0
/** What passes a device of the lab, as tcpdump prints it. Layer: lab. */
import { systemClock } from '#lib/base/clock.ts'
import { LabError } from '../errors.ts'
import type { Lab } from '../lab.ts'
import { longer } from '../slowness.ts'
import { waitFor } from '../wait.ts'

/** In pcap's language: what goes into the tunnel, without that by which agents ask whether it works. */
export const IN_TUNNEL = 'udp dst port 4789 and (udp[8] = 8 or ip6[48] = 8)'

export interface CaptureOptions {
  /** a place of the lab; "fabric" sees everything between nodes */
  readonly place: string
  /** "br0" in the fabric, "eth0" elsewhere */
  readonly device: string
  /** in pcap's language */
  readonly filter: string
  /** a packet has further lines, which also say what its checksums are worth */
  readonly verbose?: boolean
}

export interface Capture {
  /** Waits for so many lines, at most `timeoutMs`; ends it; all lines so far. */
  stop(lines: number, timeoutMs?: number): Promise<string[]>
}

/** Resolves when it listens. Throws LabError when tcpdump does not start. */
export async function startCapture(lab: Lab, options: CaptureOptions): Promise<Capture> {
  const subject = `capture in ${options.place}`
  const words = options.verbose === true ? ['-vv'] : []
  const child = lab.spawn(options.place, ['tcpdump', '-l', '-n', '-t', '--immediate-mode', ...words, '-i', options.device, options.filter])
  let stdout = ''
  let stderr = ''
  const listening = Promise.withResolvers<true>()
  const closed = Promise.withResolvers<false>()
  child.stdout?.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
    if (stderr.includes('listening on')) listening.resolve(true)
  })
  child.on('error', (error) => {
    listening.reject(error)
  })
  child.on('close', () => {
    closed.resolve(false)
  })
  const late = new AbortController()
  const timeout = systemClock.sleep(longer(10_000), late.signal).then(
    () => false,
    () => false,
  )
  const started = await Promise.race([listening.promise, closed.promise, timeout])
  late.abort()
  if (!started) {
    child.kill('SIGKILL')
    throw new LabError(subject, `tcpdump did not start: ${stderr.trim()}`)
  }
  const seen = (): string[] => stdout.split('\n').filter((line) => line !== '')
  return {
    stop: async (lines, timeoutMs = 2000) => {
      await waitFor(() => (seen().length >= lines ? true : undefined), { timeoutMs })
      child.kill('SIGINT')
      await closed.promise
      return seen()
    },
  }
}
