// SPDX-License-Identifier: Apache-2.0
/** `netplanectl node checksystem` on a scratch node. Layer: test. */
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { programCommand } from '../../../testkit/base/program.ts'

let node: ScratchNode

beforeEach(async () => {
  node = await ScratchNode.make()
  node.sh(`
    ip link add eth0 type veth peer name wire0
    ip addr add 192.0.2.1/24 dev eth0
    ip link set eth0 mtu 1329 up
    ip link set wire0 up
    ip route add default via 192.0.2.254`)
})

afterEach(async () => {
  await node[Symbol.asyncDispose]()
})

async function run(program: 'agent' | 'cli', ...args: readonly string[]): Promise<{ exit: number | null; output: string }> {
  const child = node.spawn([...programCommand(program), ...args])
  if (child.stdout === null || child.stderr === null) throw new Error('no streams')
  const [output, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { exit: child.exitCode, output: output + errors }
}

test('the text and the exit code are those of the preflight', async () => {
  const theirs = await run('agent', 'preflight', '--check')
  expect(theirs.output).toContain('devices: blocking: eth0 has an MTU of 1329')
  expect(await run('cli', 'node', 'checksystem')).toEqual(theirs)
  expect(theirs.exit).toBe(1)
})

test('JSON has every finding with its level; a warning alone is no failure', async () => {
  const { output } = await run('cli', 'node', 'checksystem', '--json')
  expect(JSON.parse(output)).toMatchObject({
    findings: expect.arrayContaining([
      expect.objectContaining({ group: 'devices', level: 'blocking', code: 'mtu-small', args: ['eth0', '1329', '1330'] }),
    ]) as unknown,
    facts: { mtu: '1329' },
  })
  node.sh('ip link set eth0 mtu 1500')
  const fit = await run('cli', 'node', 'checksystem')
  expect(fit).toEqual({ exit: /: blocking: /.test(fit.output) ? 1 : 0, output: fit.output })
})
