// SPDX-License-Identifier: Apache-2.0
/** Requests to a test cluster's API server, for tools that stand in for parts of a cluster. Layer: testkit. */
import { readFileSync } from 'node:fs'
import { request } from 'node:https'
import { listAt, textAt } from '../../lab/raw.ts'

const TIMEOUT_MS = 5000

export class Api {
  readonly #server: string
  readonly #ca: Buffer
  readonly #token: string

  /** With what a kubeconfig of identities.ts says. */
  constructor(kubeconfig: string) {
    const config: unknown = JSON.parse(readFileSync(kubeconfig, 'utf8'))
    const [cluster] = listAt(config, 'clusters')
    const [user] = listAt(config, 'users')
    this.#server = textAt(cluster, 'cluster.server') ?? ''
    this.#ca = readFileSync(textAt(cluster, 'cluster.certificate-authority') ?? '')
    this.#token = textAt(user, 'user.token') ?? ''
  }

  /** undefined when there is no such object. */
  async get(path: string): Promise<unknown> {
    return await this.#send('GET', path)
  }

  /** A merge patch; undefined when there is no such object any more. */
  async merge(path: string, patch: object): Promise<unknown> {
    return await this.#send('PATCH', path, JSON.stringify(patch))
  }

  #send(method: string, path: string, body?: string): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const headers = { authorization: `Bearer ${this.#token}`, accept: 'application/json', 'content-type': 'application/merge-patch+json' }
    const sent = request(new URL(path, this.#server), { method, ca: this.#ca, headers, timeout: TIMEOUT_MS }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        if (response.statusCode === 404) resolve(undefined)
        else if (response.statusCode === 200) resolve(JSON.parse(Buffer.concat(chunks).toString()))
        else reject(new Error(`${method} ${path}: status ${response.statusCode ?? 0}`))
      })
    })
    sent.on('timeout', () => sent.destroy(new Error(`${method} ${path}: no answer`)))
    sent.on('error', reject)
    sent.end(body)
    return promise
  }
}
