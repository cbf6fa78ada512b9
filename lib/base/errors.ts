// SPDX-License-Identifier: Apache-2.0
/** The error classes of the product, each with a literal code; callers decide on `code` and fields, never on text.
 * Layer: lib/base. */

export interface ErrorDetail {
  readonly message: string
  readonly cause?: unknown
}

/** Never thrown itself; what all of our errors have in common. */
export abstract class NetplaneError extends Error {
  abstract readonly code: string

  protected constructor(detail: ErrorDetail) {
    super(detail.message, detail.cause === undefined ? undefined : { cause: detail.cause })
    this.name = new.target.name
  }
}

/** A text or number that is not what it should be. */
export class ParseError extends NetplaneError {
  readonly code = 'PARSE'
  /** what was expected, "IP address" */
  readonly what: string
  readonly text: string

  constructor(what: string, text: string, reason?: string) {
    super({
      message: `not ${/^[aeiouAEIOU]/.test(what) ? 'an' : 'a'} ${what}: ${JSON.stringify(text)}${reason === undefined ? '' : ` (${reason})`}`,
    })
    this.what = what
    this.text = text
  }
}

/** A setting that cannot be used: flag, environment or file. */
export class ConfigError extends NetplaneError {
  readonly code = 'CONFIG'
  readonly field: string

  constructor(field: string, reason: string, cause?: unknown) {
    super({ message: `${field}: ${reason}`, cause })
    this.field = field
  }
}

/** Something has to be there first that is on its way: another attempt may find it. */
export class NotYetError extends NetplaneError {
  readonly code = 'NOT_YET'

  constructor(message: string) {
    super({ message })
  }
}

/** Objects of ours must not be written at present. */
export class DatastoreLockedError extends NetplaneError {
  readonly code = 'DATASTORE_LOCKED'

  constructor(message: string) {
    super({ message })
  }
}

/** A struct of the BPF side and its shape on ours differ. */
export class LayoutError extends NetplaneError {
  readonly code = 'LAYOUT'
  readonly struct: string

  constructor(struct: string, reason: string) {
    super({ message: `struct ${struct}: ${reason}` })
    this.struct = struct
  }
}

/** An operation on a BPF map failed. */
export class MapError extends NetplaneError {
  readonly code = 'MAP'
  readonly map: string
  readonly op: string

  constructor(detail: { readonly map: string; readonly op: string; readonly reason?: string; readonly cause?: unknown }) {
    super({ message: `map ${detail.map}: ${detail.op}: ${detail.reason ?? errorText(detail.cause)}`, cause: detail.cause })
    this.map = detail.map
    this.op = detail.op
  }
}

/** A BPF object or program cannot be opened, loaded or pinned; `verifierLog` is the kernel's explanation when it
 * gave one. */
export class ProgramError extends NetplaneError {
  readonly code = 'PROGRAM'
  readonly program: string
  readonly op: string
  readonly verifierLog: string | undefined

  constructor(detail: {
    readonly program: string
    readonly op: string
    readonly reason?: string
    readonly verifierLog?: string
    readonly cause?: unknown
  }) {
    super({ message: `program ${detail.program}: ${detail.op}: ${detail.reason ?? errorText(detail.cause)}`, cause: detail.cause })
    this.program = detail.program
    this.op = detail.op
    this.verifierLog = detail.verifierLog
  }
}

/** A program cannot be put on, or taken off, its hook ("npl12345/ingress", "cgroup/connect4"). */
export class AttachError extends NetplaneError {
  readonly code = 'ATTACH'
  readonly hook: string

  constructor(hook: string, reason: string, cause?: unknown) {
    super({ message: `hook ${hook}: ${reason}`, cause })
    this.hook = hook
  }
}

/** The kernel refused a netlink request, or its answer makes no sense. */
export class NetlinkError extends NetplaneError {
  readonly code = 'NETLINK'
  readonly op: string
  /** positive; 0 when the failure is not the kernel's */
  readonly errno: number

  constructor(op: string, reason: string, errno = 0) {
    super({ message: `netlink ${op}: ${reason}` })
    this.op = op
    this.errno = errno
  }
}

/** This kernel or machine lacks something we cannot do without. */
export class UnsupportedError extends NetplaneError {
  readonly code = 'UNSUPPORTED'
  readonly feature: string

  constructor(feature: string, reason: string, cause?: unknown) {
    super({ message: `${feature}: ${reason}`, cause })
    this.feature = feature
  }
}

/** No address can be given, for what an object says. */
export class AddressError extends NetplaneError {
  readonly code = 'ADDRESS'
  /** "Pod/default/web" */
  readonly ref: string
  /** "metadata.annotations['cni.netplane.io/ipAddrs']"; empty when it is the whole */
  readonly path: string
  readonly reason: string

  constructor(detail: { readonly ref: string; readonly path?: string; readonly reason: string }) {
    const { ref, path = '', reason } = detail
    super({ message: [ref.replace('/', ' '), path, reason].filter((part) => part !== '').join(': ') })
    this.ref = ref
    this.path = path
    this.reason = reason
  }
}

/** A child process ended badly. `status` is its exit code, undefined when a signal ended it. */
export class CommandError extends NetplaneError {
  readonly code = 'COMMAND'
  readonly command: string
  readonly status: number | undefined
  readonly stderr: string

  constructor(detail: { readonly command: string; readonly status: number | undefined; readonly stderr: string }) {
    super({ message: `${detail.command}: exit ${detail.status ?? 'by signal'}: ${detail.stderr.trim()}` })
    this.command = detail.command
    this.status = detail.status
    this.stderr = detail.stderr
  }
}

/** Ours alone: something that cannot be has happened. */
export class InternalError extends NetplaneError {
  readonly code = 'INTERNAL'

  constructor(message: string, cause?: unknown) {
    super({ message, cause })
  }
}

/** What to show of anything that was thrown. */
export function errorText(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}

/** The `code` of our errors and of those of Node and the addon ("ENOENT"); undefined when it has none. */
export function errorCode(thrown: unknown): string | undefined {
  return thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : undefined
}
