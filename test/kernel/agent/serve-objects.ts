// SPDX-License-Identifier: Apache-2.0
/** An API server of its own process, with the objects of a file, which is read again and again. Layer: test.
 *
 * `serve-objects.ts PORT FILE`: the file has pairs of a collection ("/api/v1/services") and an object. Says "ready". */
import { readFileSync } from 'node:fs'
import { FakeServer } from '../../lib/api/fake-server.ts'

type Placed = readonly [collection: string, object: Parameters<FakeServer['put']>[1]]

const [port = '', file = ''] = process.argv.slice(2)
const server = await FakeServer.start(Number(port), '::')
server.groups.set('netplane.io/v3', ['felixconfigurations'])
const held = new Map<string, string>()

function take(): void {
  const objects = JSON.parse(readFileSync(file, 'utf8')) as readonly Placed[]
  for (const [collection, object] of objects) {
    const key = `${collection} ${object.metadata.namespace ?? ''}/${object.metadata.name}`
    const text = JSON.stringify(object)
    if (held.get(key) !== text) server.put(collection, object)
    held.set(key, text)
  }
}

take()
setInterval(take, 50)
process.stdout.write('ready\n')
