// SPDX-License-Identifier: Apache-2.0
/** Fetches packages of any Debian suite and architecture with apt's own signature checks, without touching the
 * machine's package state: lists, status and sources lie in a private directory. Layer: test. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Arch } from '../../../../testkit/base/arch.ts'
import { command } from '../../../../testkit/base/command.ts'

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg'
const NET = { timeout: 600_000 }

export interface Pin {
  readonly package: string
  readonly suite: string
  readonly arch: Arch
  readonly version: string
  readonly sha256: string
  /** package whose dependency names the suite's present kernel, for a suite that drops old ones:
   * linux-image-VERSION, of which `package` is a part */
  readonly current?: string
}

export interface Fetched {
  readonly file: string
  /** what to tell when it is not exactly what was pinned */
  readonly note?: string
}

/** Downloads into `dir`. When the archive no longer has the pinned version, the suite's present one is taken and named
 * in the note; a pinned version with other contents is an error. */
export async function fetchPackage(pin: Pin, dir: string): Promise<Fetched> {
  const options = await openSuite(pin, join(dir, `apt-${pin.suite}-${pin.arch}`))
  const known = await versions(options, pin.package)
  if (known.includes(pin.version)) {
    const file = await download(options, `${pin.package}=${pin.version}`, dir)
    const sum = createHash('sha256').update(readFileSync(file)).digest('hex')
    if (sum !== pin.sha256) throw new Error(`${pin.package} ${pin.version}: sha256 is ${sum}, pinned is ${pin.sha256}`)
    return { file }
  }
  const name = pin.current === undefined ? pin.package : partOf(await dependency(options, pin.current), pin.package)
  const version = (await versions(options, name))[0]
  if (version === undefined) throw new Error(`${pin.suite} has no ${name} for ${pin.arch}`)
  const note = `${pin.suite} no longer has ${pin.package} ${pin.version}: took ${name} ${version}, pin that`
  return { file: await download(options, `${name}=${version}`, dir), note }
}

/** "linux-image-7.4.1", "linux-binary-7.3.4" → "linux-binary-7.4.1": since 6.19 a kernel is two packages. */
function partOf(image: string, pinned: string): string {
  return image.replace(/^linux-image-/, /^\D*-/.exec(pinned)?.[0] ?? '')
}

export async function unpack(file: string, dir: string): Promise<void> {
  await command('dpkg-deb', ['-x', file, dir])
}

async function openSuite(pin: Pin, state: string): Promise<string[]> {
  const sources = join(state, 'sources.list')
  const options = [
    '-qq',
    ...['-o', `Dir::State=${state}`],
    ...['-o', `Dir::State::status=${join(state, 'status')}`],
    ...['-o', `Dir::Cache=${state}`],
    ...['-o', `Dir::Etc::sourcelist=${sources}`],
    ...['-o', 'Dir::Etc::sourceparts=-'],
    ...['-o', `APT::Architecture=${pin.arch}`],
    ...['-o', `APT::Architectures=${pin.arch}`],
    ...['-o', 'APT::Sandbox::User=root'],
    ...['-o', 'Acquire::Languages=none'],
    ...['-o', 'Acquire::Retries=3'],
    // A suite past its support keeps its last, expired release file.
    ...['-o', 'Acquire::Check-Valid-Until=false'],
  ]
  if (existsSync(sources)) return options
  for (const part of ['lists/partial', 'archives/partial']) mkdirSync(join(state, part), { recursive: true })
  writeFileSync(join(state, 'status'), '')
  const keyring = existsSync(KEYRING) ? ` signed-by=${KEYRING}` : ''
  writeFileSync(sources, `deb [arch=${pin.arch}${keyring}] ${await mirror()} ${pin.suite} main\n`)
  await command('apt-get', [...options, 'update'], NET)
  return options
}

/** The archive this machine itself is set up with, whatever the form of its sources. */
async function mirror(): Promise<string> {
  const uris = await command('apt-get', ['update', '--print-uris'])
  // A suite without a dash is a release itself: not its updates, security or backports.
  const found = /^'(\S+)\/dists\/[a-z]+\/InRelease'/m.exec(uris)?.[1]
  if (found === undefined) throw new Error('apt on this machine has no Debian release among its sources')
  return found
}

async function versions(options: readonly string[], name: string): Promise<string[]> {
  const table = await command('apt-cache', [...options, 'madison', name])
  return table.split('\n').flatMap((line) => line.split('|')[1]?.trim() ?? [])
}

async function dependency(options: readonly string[], name: string): Promise<string> {
  const lines = await command('apt-cache', [...options, 'depends', '--important', name])
  const found = /Depends: (\S+)/.exec(lines)?.[1]
  if (found === undefined) throw new Error(`${name} depends on nothing`)
  return found
}

async function download(options: readonly string[], what: string, dir: string): Promise<string> {
  const before = new Set(readdirSync(dir))
  await command('apt-get', [...options, 'download', what], { cwd: dir, ...NET })
  const file = readdirSync(dir).find((name) => name.endsWith('.deb') && !before.has(name))
  if (file === undefined) throw new Error(`apt-get download ${what} left no file`)
  return join(dir, file)
}
