// SPDX-License-Identifier: Apache-2.0
/** How a lab can be asked for, and the defaults. Layer: lab. */
import { resolve } from 'node:path'
import { LabError } from './errors.ts'
import { defaultAgentCommand } from './paths.ts'
import type { SavedOptions } from './state.ts'

export const DEFAULT_LAB = 'lab'

/** Everything may be left out but `resources` of a new lab; what is left out stays as it was. */
export type UpOptions = { readonly [K in keyof SavedOptions]?: SavedOptions[K] | undefined } & {
  /** default "lab" */
  readonly name?: string | undefined
  /** false: do not wait until agents are ready */
  readonly wait?: boolean
  /** called with what is being done, for people to read */
  readonly progress?: (text: string) => void
}

/** Throws LabError when a new lab has no manifests, or a lab would have to change its nature. */
export function resolveOptions(asked: UpOptions, before: SavedOptions | undefined): SavedOptions {
  const lab = `lab ${asked.name ?? DEFAULT_LAB}`
  const resources = asked.resources ?? before?.resources
  if (resources === undefined) throw new LabError(lab, 'it is new: say --resources DIR')
  if (before !== undefined && asked.plain !== undefined && asked.plain !== before.plain)
    throw new LabError(lab, 'it exists, with another --plain: take it down first')
  const plain = asked.plain ?? before?.plain ?? false
  return {
    resources: resolve(resources),
    nodes: asked.nodes ?? before?.nodes,
    client: asked.client ?? before?.client ?? [],
    mtu: asked.mtu ?? before?.mtu ?? 1500,
    underlayMtu: asked.underlayMtu ?? before?.underlayMtu ?? 1500,
    plain,
    agents: asked.agents ?? before?.agents ?? !plain,
    servers: asked.servers ?? before?.servers ?? true,
    agentCommand: asked.agentCommand ?? before?.agentCommand ?? defaultAgentCommand(),
    agentFlags: asked.agentFlags ?? before?.agentFlags,
  }
}
