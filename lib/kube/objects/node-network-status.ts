// SPDX-License-Identifier: Apache-2.0
/** Status of NodeNetwork objects: what a node's programs do with services, and whether that was proven.
 * Layer: lib/kube. */
import type { Schema } from '../../base/schema.ts'
import { fieldsOf, textOf } from '../../base/object.ts'

export const MODES = ['BPF', 'Standard'] as const
export type Mode = (typeof MODES)[number]

export const PROOF_STATES = ['Running', 'Proven', 'Failed'] as const

export interface NodeNetworkStatus {
  /** of the agent */
  readonly version: string
  readonly dataplane: {
    readonly mode: Mode
    /** ISO 8601 */
    readonly since: string
    /** generations of the FelixConfigurations that the agent goes by, by their names */
    readonly configurations: Readonly<Record<string, number>>
  }
  /** services asked by the agent; undefined: not yet */
  readonly proof: Proof | undefined
  /** undefined: not known yet */
  readonly kubeProxy: 'Present' | 'Absent' | undefined
  /** flows that still belong to the other mode */
  readonly flows: { readonly other: number } | undefined
}

export interface Proof {
  readonly mode: Mode
  readonly state: (typeof PROOF_STATES)[number]
  /** by the node and from a pod */
  readonly asked: number
  readonly answered: number
  /** of these, what was asked from a pod; none: by an agent that asks from none */
  readonly fromPod?: FromPod
  /** the first ten that were not answered */
  readonly failed: readonly string[]
  /** node ports that answered the node itself over TCP, for others to ask: "192.0.2.1:30080" */
  readonly nodePorts: readonly string[]
  /** the same of name servers, over UDP; empty: also where the agent is older than this field */
  readonly udpNodePorts: readonly string[]
  /** ISO 8601 */
  readonly at: string
}

export interface FromPod {
  readonly asked: number
  readonly answered: number
  /** why nothing was; empty: there was a pod to ask from */
  readonly reason: string
}

const time: Schema = { type: 'string', format: 'date-time' }
const count: Schema = { type: 'integer', minimum: 0 }
const mode: Schema = { type: 'string', enum: MODES }

const nodePorts: Schema = { type: 'array', items: { type: 'string', maxLength: 64 }, maxItems: 64 }

export const nodeNetworkStatusSchema: Schema = {
  type: 'object',
  properties: {
    version: { type: 'string', description: 'Of the agent.', maxLength: 64 },
    dataplane: {
      type: 'object',
      description: "What the node's programs do with services.",
      properties: {
        mode,
        since: time,
        configurations: {
          type: 'object',
          description: 'Generations of the FelixConfigurations that the agent goes by.',
          additionalProperties: { type: 'integer', format: 'int64' },
        },
      },
    },
    proof: {
      type: 'object',
      description: 'Services asked by the agent after a change of mode, or a start.',
      properties: {
        mode,
        state: { type: 'string', enum: PROOF_STATES },
        asked: count,
        answered: count,
        fromPod: {
          type: 'object',
          description: 'Of these, from a namespace with the address of a pod.',
          properties: {
            asked: count,
            answered: count,
            reason: { type: 'string', description: 'Why none was asked so; empty: some were, or there is none.', maxLength: 1024 },
          },
        },
        failed: { type: 'array', description: 'The first ten.', items: { type: 'string', maxLength: 1024 }, maxItems: 10 },
        nodePorts: { ...nodePorts, description: 'That answered the node itself over TCP, for others to ask.' },
        udpNodePorts: { ...nodePorts, description: 'Of name servers, that answered it over UDP.' },
        at: time,
      },
    },
    kubeProxy: {
      type: 'string',
      enum: ['Present', 'Absent'],
      description: 'Whether a kube-proxy serves the node, where one is to run; elsewhere, whether rules of one are on it.',
    },
    flows: {
      type: 'object',
      description: 'Flows that still belong to the other mode.',
      properties: { other: count },
    },
  },
}

/** Undefined where the agent says nothing of its data plane: it knows no switch, or has not come yet. */
export function nodeNetworkStatusOf(raw: unknown): NodeNetworkStatus | undefined {
  const { version, dataplane, proof, kubeProxy, flows } = fieldsOf(raw)
  const { mode: text, since, configurations } = fieldsOf(dataplane)
  const mode = oneOf(MODES, text)
  if (mode === undefined) return undefined
  const { other } = fieldsOf(flows)
  return {
    version: textOf(version),
    dataplane: { mode, since: textOf(since), configurations: numbersOf(configurations) },
    proof: proofOf(proof),
    kubeProxy: oneOf(['Present', 'Absent'], kubeProxy),
    flows: typeof other === 'number' ? { other } : undefined,
  }
}

function proofOf(raw: unknown): Proof | undefined {
  const { mode: modeText, state: stateText, asked, answered, fromPod, failed, nodePorts, udpNodePorts, at } = fieldsOf(raw)
  const [mode, state] = [oneOf(MODES, modeText), oneOf(PROOF_STATES, stateText)]
  if (mode === undefined || state === undefined) return undefined
  const texts = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(textOf) : [])
  return {
    mode,
    state,
    asked: numberOf(asked),
    answered: numberOf(answered),
    ...(fromPod === undefined ? {} : { fromPod: fromPodOf(fromPod) }),
    failed: texts(failed),
    nodePorts: texts(nodePorts),
    udpNodePorts: texts(udpNodePorts),
    at: textOf(at),
  }
}

function fromPodOf(raw: unknown): FromPod {
  const { asked, answered, reason } = fieldsOf(raw)
  return { asked: numberOf(asked), answered: numberOf(answered), reason: textOf(reason) }
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

function oneOf<const W extends string>(words: readonly W[], value: unknown): W | undefined {
  return words.find((word) => word === value)
}

function numbersOf(raw: unknown): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(fieldsOf(raw)).filter((entry): entry is [string, number] => typeof entry[1] === 'number'))
}
