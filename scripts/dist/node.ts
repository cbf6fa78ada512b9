// SPDX-License-Identifier: Apache-2.0
/** Node for a processor, as package-lock.json pins it. Layer: scripts. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isObject } from '#lib/base/object.ts'
import { inPackage } from '../bundling.ts'

const run = promisify(execFile)

/** In Node's words. */
export const PROCESSORS = ['x64', 'arm64'] as const
export type Processor = (typeof PROCESSORS)[number]

interface Pin {
  readonly version: string
  /** "sha512-…" */
  readonly integrity: string
}

/** The folder of its package: this machine's own, or one that npm fetches once into build/. */
export async function nodeFor(processor: Processor): Promise<string> {
  const name = `node-linux-${processor}`
  const installed = inPackage('node_modules', name)
  if (existsSync(installed)) return installed
  const pin = pinOf(name)
  const folder = inPackage('build/node', `${name}-${pin.version}`)
  const unpacked = join(folder, 'package')
  if (existsSync(join(unpacked, 'LICENSE'))) return unpacked
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  await run('npm', ['pack', `${name}@${pin.version}`, '--silent', '--pack-destination', folder])
  const archive = join(folder, `${name}-${pin.version}.tgz`)
  mustBe(pin, readFileSync(archive), name)
  await run('tar', ['-C', folder, '-xzf', archive, 'package/bin/node', 'package/LICENSE'])
  rmSync(archive)
  return unpacked
}

/** Throws for other bytes than the lock file has. */
export function mustBe({ integrity }: Pin, bytes: Uint8Array, name: string): void {
  const found = `sha512-${createHash('sha512').update(bytes).digest('base64')}`
  if (found !== integrity) throw new Error(`${name} is not what package-lock.json pins: ${found}`)
}

function pinOf(name: string): Pin {
  const lock: unknown = JSON.parse(readFileSync(inPackage('package-lock.json'), 'utf8'))
  const packages = isObject(lock) && isObject(lock['packages']) ? lock['packages'] : {}
  const found = packages[`node_modules/${name}`]
  if (!isObject(found) || typeof found['version'] !== 'string' || typeof found['integrity'] !== 'string')
    throw new Error(`package-lock.json does not pin ${name}`)
  return { version: found['version'], integrity: found['integrity'] }
}
