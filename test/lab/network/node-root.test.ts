// SPDX-License-Identifier: Apache-2.0
/** The script that makes a node's mounts. */
import { expect, test } from 'vitest'
import { nodeRootScript, quote } from '../../../lab/network/node-root.ts'

test('joining the cgroup "holder" is the last thing that can fail', () => {
  const lines = nodeRootScript({ node: 'a', stage: '/run/netplane-lab/t/stage-a', keep: ['/run/netplane-lab/t'] }).split('\n')
  expect(lines.slice(-2)).toEqual(['echo $$ > /sys/fs/cgroup/holder/cgroup.procs', 'exec sleep infinity'])
  expect(lines).toContain(
    "mkdir -p '/run/netplane-lab/t/stage-a''/netplane-lab/t'; mount -n --bind '/run/netplane-lab/t' '/run/netplane-lab/t/stage-a''/netplane-lab/t'",
  )
})

test('a word is one word', () => {
  expect(quote("it's $HOME")).toBe(String.raw`'it'\''s $HOME'`)
})
