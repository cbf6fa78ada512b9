// SPDX-License-Identifier: Apache-2.0
/** The little of DNS's wire format (RFC 1035) that a cluster's names need. Layer: testkit (pure). */
import { addrBytes, isV4, parseAddr } from '#lib/base/ip.ts'

export const A = 1
export const AAAA = 28
export const PTR = 12
export const SRV = 33
const CNAME = 5
const CLASS_IN = 1
const HEADER = 12
/** QR, AA, RA */
const ANSWER_FLAGS = 0x8480
const RECURSION_WANTED = 0x0100
export const NO_SUCH_NAME = 3
/** seconds: tests change what a name means */
const TTL = 1

export interface Question {
  readonly id: number
  readonly flags: number
  /** lower case, without the last dot */
  readonly name: string
  readonly type: number
  /** as it came, with type and class */
  readonly raw: Buffer
}

export interface Answer {
  /** another name for what was asked, when there is one */
  readonly alias?: string
  readonly addresses: readonly string[]
  /** whose address was asked for, for PTR */
  readonly pointer?: string
  /** where the service that was asked for is, for SRV */
  readonly places?: readonly Place[]
  readonly code: number
}

export interface Place {
  readonly host: string
  readonly port: number
}

/** undefined for what is no question. */
export function parseQuestion(message: Buffer): Question | undefined {
  if (message.length < HEADER || message.readUInt16BE(4) < 1 || (message.readUInt16BE(2) & 0x8000) !== 0) return undefined
  const labels: string[] = []
  let at = HEADER
  for (;;) {
    const length = message[at]
    if (length === undefined || length > 63) return undefined
    at += 1
    if (length === 0) break
    labels.push(message.toString('latin1', at, at + length))
    at += length
  }
  if (at + 4 > message.length) return undefined
  const raw = message.subarray(HEADER, at + 4)
  return {
    id: message.readUInt16BE(0),
    flags: message.readUInt16BE(2),
    name: labels.join('.').toLowerCase(),
    type: message.readUInt16BE(at),
    raw,
  }
}

/** What there is of the type that was asked for; the rest is left out. */
export function formatAnswer(question: Question, answer: Answer): Buffer {
  // 0xc00c: the name of the question
  const asked = Buffer.from([0xc0, HEADER])
  const alias = answer.alias === undefined ? undefined : formatName(answer.alias)
  const records = [
    ...(alias === undefined ? [] : [record(asked, CNAME, alias)]),
    ...valuesOf(question.type, answer).map((value) => record(alias ?? asked, question.type, value)),
  ]
  const header = Buffer.alloc(HEADER)
  header.writeUInt16BE(question.id, 0)
  header.writeUInt16BE(ANSWER_FLAGS | (question.flags & RECURSION_WANTED) | answer.code, 2)
  header.writeUInt16BE(1, 4)
  header.writeUInt16BE(records.length, 6)
  return Buffer.concat([header, question.raw, ...records])
}

function valuesOf(type: number, answer: Answer): Buffer[] {
  if (type === PTR) return answer.pointer === undefined ? [] : [formatName(answer.pointer)]
  if (type === SRV) return (answer.places ?? []).map(({ host, port }) => Buffer.concat([priorityOf(port), formatName(host)]))
  return answer.addresses
    .map(parseAddr)
    .filter((addr) => type === (isV4(addr) ? A : AAAA))
    .map((addr) => Buffer.from(isV4(addr) ? addrBytes(addr).subarray(12) : addrBytes(addr)))
}

/** All places are as good: priority 0, weight 1, then the port. */
function priorityOf(port: number): Buffer {
  const fixed = Buffer.alloc(6)
  fixed.writeUInt16BE(1, 2)
  fixed.writeUInt16BE(port, 4)
  return fixed
}

function record(name: Buffer, type: number, value: Buffer): Buffer {
  const fixed = Buffer.alloc(10)
  fixed.writeUInt16BE(type, 0)
  fixed.writeUInt16BE(CLASS_IN, 2)
  fixed.writeUInt32BE(TTL, 4)
  fixed.writeUInt16BE(value.length, 8)
  return Buffer.concat([name, fixed, value])
}

function formatName(name: string): Buffer {
  const labels = name.replace(/\.$/, '').split('.')
  return Buffer.concat([
    ...labels.map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label, 'latin1')])),
    Buffer.from([0]),
  ])
}
