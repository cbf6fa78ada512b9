// SPDX-License-Identifier: Apache-2.0
/** Node for another architecture: the package of our lock file that npm leaves out on this one. Layer: test. */
import { createHash } from 'node:crypto'
import { readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { FACTS, hostArch } from '../../../../testkit/base/arch.ts'
import type { Arch } from '../../../../testkit/base/arch.ts'
import { cached } from '../../../../testkit/base/cache.ts'
import { command } from '../../../../testkit/base/command.ts'

/** Where npm puts the Node of this machine, headers and all. */
export function hostNodeDir(top: string): string {
  return join(top, 'node_modules', `node-linux-${FACTS[hostArch()].node}`)
}

/** The program's path. */
export async function nodeFor(arch: Arch, top: string): Promise<string> {
  if (arch === hostArch()) return join(hostNodeDir(top), 'bin/node')
  const name = `node-linux-${FACTS[arch].node}`
  const { version, integrity } = locked(name, top)
  const dir = await cached(`${name}-${version}`, async (half) => {
    await command('npm', ['pack', `${name}@${version}`, '--silent', '--pack-destination', half], { cwd: half, timeout: 600_000 })
    const archive = join(half, `${name}-${version}.tgz`)
    const sum = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`
    if (sum !== integrity) throw new Error(`${name} ${version}: contents are ${sum}, package-lock.json says ${integrity}`)
    await command('tar', ['-xzf', archive, '-C', half, 'package/bin/node'])
    renameSync(join(half, 'package/bin/node'), join(half, 'node'))
    for (const rest of ['package', `${name}-${version}.tgz`]) rmSync(join(half, rest), { recursive: true })
  })
  return join(dir, 'node')
}

function locked(name: string, top: string): { version: string; integrity: string } {
  const text = readFileSync(join(top, 'package-lock.json'), 'utf8')
  const entry = new RegExp(
    `"node_modules/${name}": \\{\\s*"version": "([^"]+)",(?:\\s*"resolved": "[^"]+",)?\\s*"integrity": "([^"]+)"`,
  ).exec(text)
  const [, version, integrity] = entry ?? []
  if (version === undefined || integrity === undefined) throw new Error(`package-lock.json does not pin ${name}`)
  return { version, integrity }
}
