// SPDX-License-Identifier: Apache-2.0
/** A server with one Lease, and the time in which processes ask for it. Layer: test. */
import { ApiError } from '#lib/api/errors.ts'
import type { ApiObject } from '#lib/api/resource.ts'
import type { FakeClock } from './fake-clock.ts'

const refused = (reason: string): ApiError => new ApiError({ status: reason === 'NotFound' ? 404 : 409, reason, message: reason })

/** One Lease, with the server's rule that a write is of the version that was read. */
export class FakeLeaseServer {
  object: ApiObject | undefined
  isAway = false
  reads = 0
  #version = 0

  get(): Promise<ApiObject> {
    this.reads++
    if (this.isAway) return Promise.reject(refused('ServiceUnavailable'))
    return this.object === undefined ? Promise.reject(refused('NotFound')) : Promise.resolve(this.object)
  }

  create(object: ApiObject): Promise<ApiObject> {
    return this.object === undefined ? this.#put(object) : Promise.reject(refused('AlreadyExists'))
  }

  update(object: ApiObject): Promise<ApiObject> {
    if (this.isAway) return Promise.reject(refused('ServiceUnavailable'))
    const isSame = object.metadata.resourceVersion === this.object?.metadata.resourceVersion
    return isSame ? this.#put(object) : Promise.reject(refused('Conflict'))
  }

  get spec(): Readonly<Record<string, unknown>> {
    return (this.object?.['spec'] ?? {}) as Readonly<Record<string, unknown>>
  }

  #put(object: ApiObject): Promise<ApiObject> {
    this.object = { ...object, metadata: { ...object.metadata, resourceVersion: `${++this.#version}` } }
    return Promise.resolve(this.object)
  }
}

/** So long as several rounds take, each with its answers. */
export async function pass(clock: FakeClock, ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 1000) {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    clock.advance(Math.min(left, 1000))
  }
  for (let turn = 0; turn < 20; turn++) await Promise.resolve()
}
