// SPDX-License-Identifier: Apache-2.0
/** A hash map in memory that behaves as the addon's `BpfMap` does; both run the suite in map-contract.ts.
 * Layer: test. */

export interface FakeMapSpec {
  readonly name: string
  readonly keySize: number
  readonly valueSize: number
  readonly maxEntries: number
}

/** As the addon throws them. */
export class FakeNativeError extends Error {
  readonly code: string
  readonly errno: number
  readonly op: string
  readonly done: number | undefined

  constructor(code: keyof typeof ERRNO, op: string, done?: number) {
    super(`${op}: ${code}`)
    this.code = code
    this.errno = ERRNO[code]
    this.op = op
    this.done = done
  }
}

const ERRNO = { ENOENT: 2, E2BIG: 7, EBADF: 9, ENOMEM: 12, EEXIST: 17, EINVAL: 22 }

export class FakeMap {
  readonly keyBytes: number
  readonly valueBytes: number
  /** calls that reached the map, by name: for tests that count writes */
  readonly calls: string[] = []
  /** keys (latin1) whose writing or deleting fails with ENOMEM */
  readonly broken = new Set<string>()
  readonly #spec: FakeMapSpec
  readonly #rows = new Map<string, string>()
  #closed = false

  constructor(spec: FakeMapSpec) {
    this.#spec = spec
    this.keyBytes = spec.keySize
    this.valueBytes = spec.valueSize
  }

  info(): {
    name: string
    type: number
    keySize: number
    valueSize: number
    maxEntries: number
    flags: number
    id: number
    btfId: number
    keyTypeId: number
    valueTypeId: number
  } {
    this.#open('bpf_obj_get_info_by_fd')
    return { ...this.#spec, type: 1, flags: 0, id: 1, btfId: 0, keyTypeId: 0, valueTypeId: 0 }
  }

  lookup(key: Uint8Array): Buffer | undefined {
    const value = this.#rows.get(this.#key(key, 'bpf_map_lookup_elem'))
    return value === undefined ? undefined : Buffer.from(value, 'latin1')
  }

  update(key: Uint8Array, value: Uint8Array, flags = 0): void {
    this.#set(this.#key(key, 'bpf_map_update_elem'), this.#value(value, 'bpf_map_update_elem'), { op: 'bpf_map_update_elem', flags })
  }

  delete(key: Uint8Array): boolean {
    return this.#rows.delete(this.#key(key, 'bpf_map_delete_elem'))
  }

  nextKey(key: Uint8Array | undefined): Buffer | undefined {
    const keys = [...this.#rows.keys()]
    // as the kernel: a key that is not there means from the start
    const at = key === undefined ? -1 : keys.indexOf(this.#key(key, 'bpf_map_get_next_key'))
    const next = keys[at + 1]
    return next === undefined ? undefined : Buffer.from(next, 'latin1')
  }

  updateBatch(keys: Uint8Array, values: Uint8Array, count: number): number {
    this.#open('bpf_map_update_batch')
    this.#enough({ have: Math.min(keys.length / this.keyBytes, values.length / this.valueBytes), count, op: 'bpf_map_update_batch' })
    this.calls.push('updateBatch')
    for (let at = 0; at < count; at++) {
      this.#set(slice(keys, at, this.keyBytes), slice(values, at, this.valueBytes), { op: 'bpf_map_update_batch', flags: 0, done: at })
    }
    return count
  }

  deleteBatch(keys: Uint8Array, count: number): number {
    this.#open('bpf_map_delete_batch')
    this.#enough({ have: keys.length / this.keyBytes, count, op: 'bpf_map_delete_batch' })
    this.calls.push('deleteBatch')
    let existed = 0
    for (let at = 0; at < count; at++) {
      const key = slice(keys, at, this.keyBytes)
      if (this.broken.has(key)) throw new FakeNativeError('ENOMEM', 'bpf_map_delete_batch', at)
      if (this.#rows.delete(key)) existed++
    }
    return existed
  }

  deleteSame(keys: Uint8Array, values: Uint8Array, count: number): number {
    this.#open('bpf_map_delete_elem')
    this.#enough({ have: Math.min(keys.length / this.keyBytes, values.length / this.valueBytes), count, op: 'bpf_map_delete_elem' })
    this.calls.push('deleteSame')
    let deleted = 0
    for (let at = 0; at < count; at++) {
      const key = slice(keys, at, this.keyBytes)
      if (this.#rows.get(key) === slice(values, at, this.valueBytes) && this.#rows.delete(key)) deleted++
    }
    return deleted
  }

  /** In the order of keys, so that neither new rows nor deleted ones confuse it. */
  readChunk(
    cursor: Uint8Array | undefined,
    room: number,
  ): Promise<{ keys: Buffer; values: Buffer; count: number; next: Buffer | undefined }> {
    this.#open('bpf_map_lookup_batch')
    this.calls.push('readChunk')
    const from = cursor === undefined ? undefined : Buffer.from(cursor).toString('latin1')
    const rest = [...this.#rows].filter(([key]) => from === undefined || key > from).sort(([a], [b]) => (a < b ? -1 : 1))
    const rows = rest.slice(0, room)
    const last = rows.at(-1)
    return Promise.resolve({
      keys: Buffer.from(rows.map(([key]) => key).join(''), 'latin1'),
      values: Buffer.from(rows.map(([, value]) => value).join(''), 'latin1'),
      count: rows.length,
      next: last === undefined || rest.length === rows.length ? undefined : Buffer.from(last[0], 'latin1'),
    })
  }

  dump(): Promise<{ keys: Buffer; values: Buffer; count: number }> {
    this.#open('bpf_map_lookup_batch')
    this.calls.push('dump')
    return Promise.resolve({
      keys: Buffer.from([...this.#rows.keys()].join(''), 'latin1'),
      values: Buffer.from([...this.#rows.values()].join(''), 'latin1'),
      count: this.#rows.size,
    })
  }

  close(): void {
    this.#closed = true
  }

  /** A stranger's hand: no checks, no counting. */
  poke(key: string, value: string | undefined): void {
    if (value === undefined) this.#rows.delete(key)
    else this.#rows.set(key, value)
  }

  /** What is in it, as byte strings. */
  contents(): ReadonlyMap<string, string> {
    return this.#rows
  }

  #set(key: string, value: string, how: { readonly op: string; readonly flags: number; readonly done?: number }): void {
    const exists = this.#rows.has(key)
    if (this.broken.has(key)) throw new FakeNativeError('ENOMEM', how.op, how.done)
    if (how.flags === 1 && exists) throw new FakeNativeError('EEXIST', how.op, how.done)
    if (how.flags === 2 && !exists) throw new FakeNativeError('ENOENT', how.op, how.done)
    if (!exists && this.#rows.size >= this.#spec.maxEntries) throw new FakeNativeError('E2BIG', how.op, how.done)
    this.#rows.set(key, value)
  }

  #key(bytes: Uint8Array, op: string): string {
    this.#open(op)
    if (bytes.length !== this.keyBytes) throw new FakeNativeError('EINVAL', op)
    return slice(bytes, 0, this.keyBytes)
  }

  #value(bytes: Uint8Array, op: string): string {
    if (bytes.length !== this.valueBytes) throw new FakeNativeError('EINVAL', op)
    return slice(bytes, 0, this.valueBytes)
  }

  #open(op: string): void {
    if (this.#closed) throw new FakeNativeError('EBADF', op)
  }

  #enough(what: { readonly have: number; readonly count: number; readonly op: string }): void {
    if (!(Number.isInteger(what.count) && what.count >= 0 && what.have >= what.count)) throw new FakeNativeError('EINVAL', what.op)
  }
}

function slice(bytes: Uint8Array, at: number, size: number): string {
  return Buffer.from(bytes.subarray(at * size, (at + 1) * size)).toString('latin1')
}
