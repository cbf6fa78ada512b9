// SPDX-License-Identifier: Apache-2.0
/** Node ports that are asked by pods in the operator's place, which are played: their program runs here.
 * Layer: testkit. */
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { ApiObject } from '#lib/api/resource.ts'
import { systemClock } from '#lib/base/clock.ts'
import { packageRoot } from '#lib/base/os/package.ts'
import { listAt, numberAt, textAt } from '../../../lab/raw.ts'
import { freePort } from '../../base/free-port.ts'

const PROGRAM = join(packageRoot(), 'dist/operator/main.js')

export class AskingPods {
  /** where each ran, and for how long it asked: "n1 --for=5" */
  readonly asked: string[] = []
  /** such a pod does not come to an end */
  isMute = false

  /** What it would; undefined: it is another. */
  async says(pod: ApiObject): Promise<string | undefined> {
    const ask = listAt(pod, 'spec.initContainers').find((container) => textAt(container, 'name') === 'ask')
    if (ask === undefined) return undefined
    while (this.isMute) await systemClock.sleep(50, new AbortController().signal)
    const [patience = '', ...places] = listAt(ask, 'args').map(String)
    this.asked.push(`${textAt(pod, 'spec.nodeName') ?? ''} ${patience}`)
    return (await promisify(execFile)(process.execPath, [PROGRAM, 'ask', patience, ...places])).stdout
  }
}

/** Of this machine. Answers so many times, and counts them; then nobody else does. */
export class AskedPort implements Disposable {
  asked = 0
  readonly #server

  constructor(most = Infinity) {
    this.#server = createServer((socket) => {
      socket.destroy()
      if (++this.asked === most) this.#server.close()
    })
  }

  /** Where it answers from now on: "127.0.0.1:30080" */
  async open(): Promise<string> {
    this.#server.listen(await freePort(), '127.0.0.1')
    await once(this.#server, 'listening')
    return `127.0.0.1:${String(numberAt(this.#server.address(), 'port'))}`
  }

  [Symbol.dispose](): void {
    this.#server.close()
  }
}
