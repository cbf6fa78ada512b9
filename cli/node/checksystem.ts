// SPDX-License-Identifier: Apache-2.0
/** `node checksystem`: what this node lacks for Netplane, found by the agent's own preflight. Layer: cli. */
import { errorText } from '#lib/base/errors.ts'
import { describe, levelOf, type ProbeGroup } from '#lib/preflight/findings.ts'
import type { PreflightOptions } from '#agent/preflight/options.ts'
import { probe } from '#agent/preflight/probe.ts'
import { probedText, type Probed } from '#agent/preflight/probed.ts'
import type { ChecksystemOrder } from '../args.ts'
import { linesText, type CommandResult } from '../command-result.ts'

type Looked = readonly [ProbeGroup, Probed | { readonly failure: string }]

/** Fails when something is blocking, or a group could not be looked at. */
export async function checksystemCommand({ options, json }: ChecksystemOrder): Promise<CommandResult> {
  const looked: Looked[] = []
  for (const group of options.groups) looked.push([group, await tried(group, options)])
  const found = looked.filter((one): one is readonly [ProbeGroup, Probed] => !('failure' in one[1]))
  const failures = looked.flatMap(([group, one]) => ('failure' in one ? [`${group} could not be looked at: ${one.failure}`] : []))
  const text = json ? jsonText(found) : found.map(([group, probed]) => probedText(group, probed)).join('')
  const isBlocked = found.some(([, { findings }]) => findings.some(({ code }) => levelOf(code) === 'blocking'))
  return { text, warnings: linesText(failures), exitCode: isBlocked || failures.length > 0 ? 1 : 0 }
}

async function tried(group: ProbeGroup, options: PreflightOptions): Promise<Looked[1]> {
  try {
    return await probe(group, options)
  } catch (thrown) {
    return { failure: errorText(thrown) }
  }
}

function jsonText(found: readonly (readonly [ProbeGroup, Probed])[]): string {
  const findings = found.flatMap(([group, probed]) =>
    probed.findings.map((one) => ({ group, level: levelOf(one.code), code: one.code, args: one.args, text: describe(one) })),
  )
  const facts = Object.assign({}, ...found.map(([, probed]) => probed.facts)) as Probed['facts']
  return `${JSON.stringify({ findings, facts }, undefined, 2)}\n`
}
