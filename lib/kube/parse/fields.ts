// SPDX-License-Identifier: Apache-2.0
/** Reading fields of raw JSON, with the path of whatever is wrong. Layer: lib/kube. */
import { atOnce, type Sliced } from '../../base/async/slices.ts'
import { NetplaneError } from '../../base/errors.ts'
import { addrBits, isPort } from '../../base/ip.ts'
import type { Addr, Cidr, Port, Protocol } from '../../base/ip.ts'
import { isObject } from '../../base/object.ts'
import { tryParseStoredAddr, tryParseStoredCidr } from '../../base/stored-ip.ts'
import type { InternPool } from './intern.ts'

/** A JSON object. Only own fields with names of ours are ever read from it. */
export type Raw = Readonly<Record<string, unknown>>

/** A field that cannot be used; thrown by the readers here and caught where an object or one of its parts is parsed. */
export class FieldError extends NetplaneError {
  readonly code = 'FIELD'
  readonly reason: string
  /** one address or prefix is bad, and nothing else */
  readonly isAddress: boolean
  #path: string

  constructor(path: string, reason: string, isAddress = false) {
    // the path tells the place: a stack would take four fifths of the time that an object with many bad parts takes
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super({ message: `${path}: ${reason}` })
    Error.stackTraceLimit = stackTraceLimit
    this.#path = path
    this.reason = reason
    this.isAddress = isAddress
  }

  /** from the object that is being read: "ports[0].port" */
  get path(): string {
    return this.#path
  }

  /** This error, which is of a part that has this path: it goes in front. Another error for each part around it would
   * take twice the time. */
  under(path: string): this {
    this.#path = this.#path === '' || this.#path.startsWith('[') ? path + this.#path : `${path}.${this.#path}`
    this.message = `${this.#path}: ${this.reason}`
    return this
  }
}

/** What a parser of one kind is given: the object, its identity, where to report what was left out, and shared copies
 * of repeated texts. */
export interface ParseInput {
  readonly raw: Raw
  readonly namespace: string
  readonly name: string
  readonly refuse: (error: FieldError) => void
  readonly intern: (text: string) => string
  /** the same for labels and ports */
  readonly shared: Pick<InternPool, 'labels' | 'ports' | 'group'>
}

/** The one empty list of all values that have none. */
export const NONE: readonly never[] = Object.freeze([])

/** Null counts as missing, as in the API. */
export function own(raw: Raw, key: string): unknown {
  const value = raw[key]
  // most fields are missing, and need no second look
  return value === undefined || value === null || !Object.hasOwn(raw, key) ? undefined : value
}

export function text(raw: Raw, key: string): string | undefined {
  const value = own(raw, key)
  if (value === undefined || typeof value === 'string') return value
  throw new FieldError(key, 'must be text')
}

export function flag(raw: Raw, key: string): boolean | undefined {
  const value = own(raw, key)
  if (value === undefined || typeof value === 'boolean') return value
  throw new FieldError(key, 'must be true or false')
}

export function integer(raw: Raw, key: string): number | undefined {
  const value = own(raw, key)
  if (value === undefined || (typeof value === 'number' && Number.isSafeInteger(value))) return value
  throw new FieldError(key, 'must be a whole number')
}

export function number(raw: Raw, key: string): number | undefined {
  const value = own(raw, key)
  if (value === undefined || (typeof value === 'number' && Number.isFinite(value))) return value
  throw new FieldError(key, 'must be a number')
}

/** In ms since 1970. */
export function time(raw: Raw, key: string): number | undefined {
  const value = text(raw, key)
  const ms = value === undefined ? undefined : Date.parse(value)
  if (Number.isNaN(ms)) throw new FieldError(key, 'must be a time')
  return ms
}

export function port(raw: Raw, key: string): Port | undefined {
  const value = own(raw, key)
  if (value === undefined) return undefined
  if (typeof value === 'number' && isPort(value)) return value
  throw new FieldError(key, 'must be 1..65535')
}

/** One of the given words; `absent` when the field is missing. */
export function oneOf<const W extends string, const A>(
  raw: Raw,
  key: string,
  choice: { readonly words: readonly W[]; readonly absent: A },
): W | A {
  const value = text(raw, key)
  if (value === undefined) return choice.absent
  const word = choice.words.find((candidate) => candidate === value)
  if (word === undefined) throw new FieldError(key, `must be ${choice.words.join(' or ')}`)
  return word
}

export function protocol(raw: Raw): Protocol {
  return oneOf(raw, 'protocol', { words: ['TCP', 'UDP', 'SCTP'], absent: 'TCP' })
}

/** Refuses fields of other names: one that is not understood might be what narrows the rest. */
export function only(raw: Raw, keys: readonly string[]): Raw {
  const other = Object.keys(raw).find((key) => !keys.includes(key) && own(raw, key) !== undefined)
  if (other !== undefined) throw new FieldError(other, 'is not a field that is understood here')
  return raw
}

/** An empty object when the field is missing. */
export function record(raw: Raw, key: string): Raw {
  const value = own(raw, key)
  if (value === undefined) return {}
  if (isObject(value)) return value
  throw new FieldError(key, 'must be an object')
}

/** What `read` throws as FieldError comes out with `path` in front. A number is a place in a list: only then is it
 * written. */
export function under<T>(path: string | number, read: () => T): T {
  try {
    return read()
  } catch (thrown) {
    throw thrown instanceof FieldError ? thrown.under(typeof path === 'number' ? `[${path}]` : path) : thrown
  }
}

/** Reads the object in field `key`, an empty one when the field is missing. */
export function inside<T>(raw: Raw, key: string, read: (value: Raw) => T): T {
  const value = record(raw, key)
  return under(key, () => read(value))
}

/** As {@link inside}, where the reading can be interrupted. */
export function* insideInSlices<T>(raw: Raw, key: string, read: (value: Raw) => Sliced<T>): Sliced<T> {
  const value = record(raw, key)
  try {
    return yield* read(value)
  } catch (thrown) {
    throw thrown instanceof FieldError ? thrown.under(key) : thrown
  }
}

/** Those of a list, unread. The shared empty list when the field is missing. */
export function elements(raw: Raw, key: string): readonly unknown[] {
  const values = own(raw, key)
  if (values === undefined) return NONE
  if (!Array.isArray(values)) throw new FieldError(key, 'must be a list')
  return values
}

/** Reads every element, or throws. Returns the shared empty list for an empty one. */
export function each<T>(raw: Raw, key: string, read: (value: unknown) => T): readonly T[] {
  const values = elements(raw, key)
  // map makes a list of exactly this length; pushing would leave a third of it empty
  return values.length === 0 ? NONE : values.map((value, at) => under(key, () => under(at, () => read(value))))
}

/** As {@link each}, where the reading can be interrupted. What reads as undefined is left out. */
export function allInSlices<T>(raw: Raw, key: string, read: Use<T>['read']): Sliced<readonly T[]> {
  const refuse = (error: FieldError): void => {
    throw error
  }
  return usableInSlices(raw, key, { read, refuse })
}

interface Use<T> {
  readonly read: (value: unknown) => T | undefined
  readonly refuse: (error: FieldError) => void
}

/** As {@link each}, but what cannot be used is left out and handed to `refuse`. */
export function usable<T>(raw: Raw, key: string, use: Use<T>): readonly T[] {
  return atOnce(usableInSlices(raw, key, use))
}

/** As {@link usable}, where the reading can be interrupted. */
export function* usableInSlices<T>(raw: Raw, key: string, { read, refuse }: Use<T>): Sliced<readonly T[]> {
  const values = elements(raw, key)
  const result: T[] = []
  for (let at = 0; at < values.length; at++) {
    try {
      const value = read(values[at])
      if (value !== undefined) result.push(value)
    } catch (thrown) {
      if (!(thrown instanceof FieldError)) throw thrown
      refuse(thrown.under(`${key}[${at}]`))
    }
    yield
  }
  // a copy has exactly this length; what is pushed to is a third longer
  return result.length === 0 ? NONE : result.slice()
}

/** Reports what is left out of this part of the object. */
export function refuseUnder({ refuse }: Pick<ParseInput, 'refuse'>, path: string): (error: FieldError) => void {
  return (error) => {
    refuse(error.under(path))
  }
}

/** As {@link usable}, but only for addresses: whatever else is wrong is thrown. */
export function usableAddresses<T>(raw: Raw, key: string, use: Use<T>): readonly T[] {
  return atOnce(usableAddressesInSlices(raw, key, use))
}

/** As {@link usableAddresses}, where the reading can be interrupted. */
export function usableAddressesInSlices<T>(raw: Raw, key: string, { read, refuse }: Use<T>): Sliced<readonly T[]> {
  const refuseAddress = (error: FieldError): void => {
    if (!error.isAddress) throw error
    refuse(error)
  }
  return usableInSlices(raw, key, { read, refuse: refuseAddress })
}

/** The value alone, where a list may be missing; none where its address is bad. */
export function usableAddress<T>(path: string, value: unknown, { read, refuse }: Use<T>): readonly T[] {
  return usableAddresses({ value: [value] }, 'value', {
    read,
    refuse: (error) => {
      refuse(new FieldError(path, error.reason))
    },
  })
}

/** The same object without those elements of a list that have a bad address. */
export function withoutBadAddresses(raw: Raw, key: string, { read, refuse }: Use<unknown>): Raw {
  const values = own(raw, key)
  if (!Array.isArray(values)) return raw
  const good = usableAddresses(raw, key, {
    read: (value) => {
      read(value)
      return value
    },
    refuse,
  })
  return good.length === values.length ? raw : { ...raw, [key]: good }
}

interface WithAddresses<T> extends Use<unknown> {
  readonly whole: (raw: Raw) => T
}

/** Reads the `whole` object; where that fails, without those elements of a list that have a bad address. */
export function readWithoutBadAddresses<T>(raw: Raw, key: string, { whole, ...use }: WithAddresses<T>): T {
  try {
    return whole(raw)
  } catch (thrown) {
    if (!(thrown instanceof FieldError)) throw thrown
    return whole(withoutBadAddresses(raw, key, use))
  }
}

export function asText(value: unknown): string {
  if (typeof value === 'string') return value
  throw new FieldError('', 'must be text')
}

export function asRecord(value: unknown): Raw {
  if (isObject(value)) return value
  throw new FieldError('', 'must be an object')
}

/** In any form that API servers store. */
export function asAddr(value: unknown): Addr {
  const addr = typeof value === 'string' ? tryParseStoredAddr(value) : undefined
  if (addr === undefined) throw new FieldError('', 'must be an IP address', true)
  return addr
}

/** A prefix, or an address that stands for itself alone. */
export function asNet(value: unknown): Cidr {
  if (typeof value === 'string' && !value.includes('/')) {
    const addr = asAddr(value)
    return { addr, bits: addrBits(addr) }
  }
  return asCidr(value)
}

export function asCidr(value: unknown): Cidr {
  const cidr = typeof value === 'string' ? tryParseStoredCidr(value) : undefined
  if (cidr === undefined) throw new FieldError('', 'must be an IP prefix, like 10.0.0.0/24', true)
  return cidr
}
