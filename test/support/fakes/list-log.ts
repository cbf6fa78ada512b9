// SPDX-License-Identifier: Apache-2.0
/** A log that keeps its lines. Layer: test. */
import type { LogFields, LogLevel, RootLog } from '#lib/obs/log.ts'

export interface Line {
  readonly level: LogLevel
  readonly event: string
  readonly fields: LogFields
}

/** Of children the lines are here as well. */
export class ListLog implements RootLog {
  readonly lines: Line[] = []
  level: LogLevel = 'info'

  get events(): readonly string[] {
    return this.lines.map(({ event }) => event)
  }

  /** Fields of all lines of this event. */
  of(event: string): readonly LogFields[] {
    return this.lines.flatMap((line) => (line.event === event ? [line.fields] : []))
  }

  debug(fields: LogFields, event: string): void {
    this.#add('debug', event, fields)
  }

  info(fields: LogFields, event: string): void {
    this.#add('info', event, fields)
  }

  warn(fields: LogFields, event: string): void {
    this.#add('warn', event, fields)
  }

  error(fields: LogFields, event: string): void {
    this.#add('error', event, fields)
  }

  fatal(fields: LogFields, event: string): void {
    this.#add('fatal', event, fields)
  }

  child(): RootLog {
    return this
  }

  setLevel(level: LogLevel): void {
    this.level = level
  }

  #add(level: LogLevel, event: string, fields: LogFields): void {
    this.lines.push({ level, event, fields })
  }
}
