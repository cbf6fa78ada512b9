// SPDX-License-Identifier: Apache-2.0
/** What goes wrong with an API server: it refuses, or it cannot be asked. Layer: lib/api. */
import { errorText, NetplaneError } from '../base/errors.ts'
import { isObject } from '../base/object.ts'

/** The server's answer is a refusal, as its Status says. */
export class ApiError extends NetplaneError {
  readonly code = 'API'
  /** of HTTP: 404; of an ERROR event: its Status' code */
  readonly status: number
  /** "NotFound", "AlreadyExists", "Conflict", "Expired", …; empty when it gives none */
  readonly reason: string
  /** in the server's own words, without the request */
  readonly said: string
  /** when the server wants to be asked again */
  readonly retryAfterMs: number | undefined
  /** the server is not yet at the version that was asked for */
  readonly isTooLarge: boolean

  constructor(detail: Pick<ApiError, 'status' | 'reason' | 'message'> & Partial<Pick<ApiError, 'said' | 'retryAfterMs' | 'isTooLarge'>>) {
    super({ message: detail.message })
    this.status = detail.status
    this.reason = detail.reason
    this.said = detail.said ?? detail.message
    this.retryAfterMs = detail.retryAfterMs
    this.isTooLarge = detail.isTooLarge === true
  }
}

/** No answer, or one that ends in the middle: whether a change was made is not known. */
export class UnreachableError extends NetplaneError {
  readonly code = 'API_UNREACHABLE'

  constructor(message: string, cause?: unknown) {
    super({ message: cause === undefined ? message : `${message}: ${errorText(cause)}`, cause })
  }
}

/** An answer in a form that we do not understand: in another one it may be. */
export class UnreadableError extends UnreachableError {}

export interface Refusal {
  /** of HTTP */
  readonly status: number
  readonly retryAfter?: string | undefined
  /** "GET /api/v1/pods" */
  readonly request: string
}

/** From what is a Status, mostly: proxies answer with other things. */
export function refusalOf(body: unknown, { status, retryAfter, request }: Refusal): ApiError {
  const { code, reason, message, details } = isObject(body) ? body : {}
  const seconds = isObject(details) && typeof details['retryAfterSeconds'] === 'number' ? details['retryAfterSeconds'] : Number(retryAfter)
  const causes: readonly unknown[] = isObject(details) && Array.isArray(details['causes']) ? details['causes'] : []
  const said = typeof message === 'string' && message !== '' ? message : `HTTP ${status}`
  return new ApiError({
    isTooLarge: causes.some((cause) => isObject(cause) && cause['reason'] === 'ResourceVersionTooLarge'),
    status: typeof code === 'number' ? code : status,
    reason: typeof reason === 'string' ? reason : '',
    said,
    message: `${request}: ${said}`,
    ...(seconds > 0 ? { retryAfterMs: seconds * 1000 } : {}),
  })
}

/** A refusal for one of these reasons. */
export function isRefused(thrown: unknown, ...reasons: readonly string[]): thrown is ApiError {
  return thrown instanceof ApiError && reasons.includes(thrown.reason)
}

/** The version asked for is no longer known, or not yet: 410, as HTTP or as an event, or its cause. */
export function isExpired(thrown: unknown): boolean {
  return thrown instanceof ApiError && (thrown.status === 410 || thrown.reason === 'Expired' || thrown.isTooLarge)
}

/** Of a watch one that may come again however often it begins at the same version. `hasBegun`: it had. Others are
 * proxies', or of servers that have too much to do to be asked for more. */
export function isFault(thrown: unknown, hasBegun: boolean): boolean {
  if (thrown instanceof ApiError) return thrown.status === 500 || (thrown.status > 500 && hasBegun)
  return thrown instanceof UnreadableError
}

/** The request itself is wrong, and would be the next time. Credentials, permissions and rate limits may change. */
export function isWrongRequest(thrown: unknown): boolean {
  return thrown instanceof ApiError && thrown.status >= 400 && thrown.status < 500 && ![401, 403, 429].includes(thrown.status)
}
