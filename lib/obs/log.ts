// SPDX-License-Identifier: Apache-2.0
/** The log: one JSON line an event on standard output, facts as fields. Layer: lib/obs. */
import { pino, type Logger } from 'pino'
import { openLogStream, type LogStream } from './log-stream.ts'

export type LogFields = Readonly<Record<string, unknown>>

/** `log.info({ map, added }, 'map.applied')`: the event is a short constant, everything that varies is a field.
 * An error goes into the field `error` as it is. */
export interface Log {
  debug(fields: LogFields, event: string): void
  info(fields: LogFields, event: string): void
  warn(fields: LogFields, event: string): void
  error(fields: LogFields, event: string): void
  /** a log whose every line has these fields as well */
  child(fields: LogFields): Log
}

/** From the least to the gravest; a log of one level says that and everything graver. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export function isLogLevel(text: string): text is LogLevel {
  return LOG_LEVELS.some((level) => level === text)
}

export interface LogOptions {
  readonly level: LogLevel
  /** fields of every line: { node } */
  readonly fields?: LogFields
  /** standard output when not given */
  readonly sink?: Pick<LogStream, 'write'>
}

/** A log whose level, and that of its children, can be changed while it runs. */
export interface RootLog extends Log {
  /** the last line of a process */
  fatal(fields: LogFields, event: string): void
  setLevel(level: LogLevel): void
}

/** Lines are written at once: the last line before a crash is the one that is needed. To be disposed of when nothing
 * more is logged: lines may wait for their reader. */
export function createLog(options: LogOptions): RootLog & AsyncDisposable {
  const stream = options.sink === undefined ? openLogStream(STDOUT, (lines) => log.warn({ lines }, 'log.lines-dropped')) : undefined
  const threshold = { rank: LOG_LEVELS.indexOf(options.level) }
  const root = pino(
    {
      level: 'debug',
      base: options.fields ?? {},
      messageKey: 'event',
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: (thrown: unknown) => describeError(thrown) },
    },
    options.sink ?? stream,
  )
  const log: RootLog & AsyncDisposable = {
    ...gated(root, threshold),
    fatal: (fields, event) => {
      if (threshold.rank <= LOG_LEVELS.indexOf('fatal')) root.fatal(fields, event)
    },
    setLevel: (level) => {
      threshold.rank = LOG_LEVELS.indexOf(level)
    },
    [Symbol.asyncDispose]: async () => {
      await stream?.[Symbol.asyncDispose]()
    },
  }
  return log
}

const STDOUT = 1

/** pino's children keep the level they were made with; ours share one threshold. */
function gated(logger: Logger, threshold: { readonly rank: number }): Log {
  const at = (level: 'debug' | 'info' | 'warn' | 'error') => {
    const rank = LOG_LEVELS.indexOf(level)
    return (fields: LogFields, event: string): void => {
      if (rank >= threshold.rank) logger[level](fields, event)
    }
  }
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => gated(logger.child(fields), threshold),
  }
}

/** Says nothing: for tests and one-shot commands. */
export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
}

/** Message, code and place of an error and of what caused it, as plain data. */
export function describeError(thrown: unknown): LogFields {
  if (!(thrown instanceof Error)) return { message: String(thrown) }
  const at = place(thrown)
  return {
    message: thrown.message,
    ...('code' in thrown ? { code: thrown.code } : {}),
    ...(at === undefined ? {} : { at }),
    ...('verifierLog' in thrown && thrown.verifierLog !== undefined ? { verifierLog: thrown.verifierLog } : {}),
    ...(thrown.cause === undefined ? {} : { cause: describeError(thrown.cause) }),
  }
}

/** The first frame of the stack: enough to find the line, and one line long. */
function place(thrown: Error): string | undefined {
  const frame = thrown.stack?.split('\n').find((line) => /^\s+at /.test(line))
  return frame?.trim().replace(/^at /, '')
}
