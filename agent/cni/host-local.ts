// SPDX-License-Identifier: Apache-2.0
/** What host-local has given, by its own files: versions of it without the verb GC cannot be asked for what no sandbox
 * has. Layer: agent/cni. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isIP } from 'node:net'
import { errorCode } from '#lib/base/errors.ts'
import { isObject } from '#lib/base/object.ts'
import { filesIn } from './files.ts'
import type { Sandbox } from './request.ts'

export const HOST_LOCAL = 'host-local'

const DEFAULT_FOLDER = '/var/lib/cni/networks'

/** Sandboxes that have an address by this network configuration. */
export function hostLocalSandboxes(config: Readonly<Record<string, unknown>>): readonly Sandbox[] {
  const { name, ipam } = config
  const dataDir = isObject(ipam) && typeof ipam['dataDir'] === 'string' && ipam['dataDir'] !== '' ? ipam['dataDir'] : DEFAULT_FOLDER
  const folder = join(dataDir, String(name))
  const found = filesIn(folder)
    // a file an address
    .filter((file) => isIP(file) !== 0)
    .flatMap((file) => sandboxIn(join(folder, file)))
  return [...new Map(found.map((one) => [`${one.containerId} ${one.ifname}`, one])).values()]
}

/** Its lines are the id and the interface. */
function sandboxIn(path: string): readonly Sandbox[] {
  try {
    const [containerId = '', ifname = ''] = readFileSync(path, 'utf8').trim().split(/\r?\n/)
    return containerId === '' || ifname === '' ? [] : [{ containerId, ifname }]
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return []
    throw thrown
  }
}
