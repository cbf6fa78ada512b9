// SPDX-License-Identifier: Apache-2.0
/** Other plugins, run as a runtime would: for addresses (host-local and the like), and for what they speak.
 * Layer: agent/cni. */
import { spawn } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '#lib/base/clock.ts'
import { errorText } from '#lib/base/errors.ts'
import { isV4, tryParseAddr, type Addr } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import { CniError } from './cni-error.ts'

export interface DelegateCall {
  readonly command: 'ADD' | 'CHECK' | 'DEL' | 'GC' | 'STATUS' | 'VERSION'
  readonly type: string
  /** the whole network configuration */
  readonly config: string
  /** folders with plugins, in the order in which they are searched */
  readonly folders: readonly string[]
  readonly environment: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

/** For the last of what it has printed, once it has ended. */
const REST_MS = 1000
/** Of what it has written to standard error, the end. */
const MOST_REMARK = 500

/** Throws CniError with the plugin's own words. What cannot be used is given back. */
export async function delegateAddresses(call: Omit<DelegateCall, 'command'>): Promise<readonly Addr[]> {
  const addresses = addressesIn(await runDelegate({ ...call, command: 'ADD' }))
  const isMany = [true, false].some((v4) => addresses.filter((addr) => isV4(addr) === v4).length > 1)
  if (addresses.length > 0 && !isMany) return addresses
  await runDelegate({ ...call, command: 'DEL' })
  throw new CniError('io', `plugin ${call.type} has given ${isMany ? 'more than one address of a family' : 'no address'}`)
}

const VERSION_MS = 5000

/** Of CNI, that the plugin speaks. Throws when it does not say. */
export async function delegateVersions({ type, folders }: Pick<DelegateCall, 'type' | 'folders'>): Promise<readonly string[]> {
  const config = JSON.stringify({ cniVersion: '1.0.0' })
  const output = await runDelegate({ command: 'VERSION', type, folders, config, environment: {}, timeoutMs: VERSION_MS })
  const answer: unknown = JSON.parse(output)
  const versions: unknown = isObject(answer) ? answer['supportedVersions'] : undefined
  if (!Array.isArray(versions)) throw new TypeError('supportedVersions: is no list')
  return versions.filter((version) => typeof version === 'string')
}

/** Returns what it printed. */
export async function runDelegate(call: DelegateCall): Promise<string> {
  const file = call.folders.map((folder) => join(folder, call.type)).find(isExecutable)
  if (file === undefined) throw new CniError('config', `ipam.type: there is no plugin ${call.type} in ${call.folders.join(', ')}`)
  const child = spawn(file, {
    env: { ...call.environment, CNI_COMMAND: call.command, PATH: process.env['PATH'] },
    stdio: 'pipe',
    timeout: call.timeoutMs,
    killSignal: 'SIGKILL',
  })
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
  const printed: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => printed.push(chunk)).on('error', () => undefined)
  // it must not wait for the reader of the agent's
  let remark = ''
  child.stderr.on('data', (chunk: Buffer) => (remark = `${remark}${chunk.toString()}`.slice(-MOST_REMARK))).on('error', () => undefined)
  // a child process that the plugin left behind may keep its output open
  child.once('exit', () => {
    const cancel = systemClock.after(REST_MS, () => {
      child.stdout.destroy()
      child.stderr.destroy()
    })
    child.once('close', cancel)
  })
  // one that ends without reading is judged by how it ends
  child.stdin.on('error', () => undefined).end(call.config)
  const code = await ended.catch((thrown: unknown) => {
    throw new CniError('io', `plugin ${call.type}: ${errorText(thrown)}`)
  })
  const output = Buffer.concat(printed).toString()
  if (code !== 0) throw new CniError('io', `plugin ${call.type}: ${messageIn(output) ?? endText(code, remark)}`)
  return output
}

function endText(code: number | null, remark: string): string {
  const said = remark.trim()
  return `ended with ${code ?? 'a signal'}${said === '' ? '' : `: ${said}`}`
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

function addressesIn(output: string): readonly Addr[] {
  const ips = parsed(output)?.['ips']
  return (Array.isArray(ips) ? ips : []).flatMap((ip: unknown) => {
    const address = isObject(ip) ? ip['address'] : undefined
    return (typeof address === 'string' ? tryParseAddr(address.replace(/\/\d+$/, '')) : undefined) ?? []
  })
}

function messageIn(output: string): string | undefined {
  const message = parsed(output)?.['msg']
  return typeof message === 'string' ? message : undefined
}

function parsed(output: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(output)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
