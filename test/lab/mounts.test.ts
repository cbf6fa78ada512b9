// SPDX-License-Identifier: Apache-2.0
/** What a node sees of the machine's file systems. Root. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Lab } from '../../lab/lab.ts'
import { Manifests, TWO_NODES } from './cluster.ts'

test("a node has no cgroups but its own, and no pins of the machine's, wherever the machine has them mounted", async () => {
  const elsewhere = { cgroup2: mkdtempSync(join(tmpdir(), 'netplane cgroup2 7')), bpf: mkdtempSync(join(tmpdir(), 'netplane-bpf-')) }
  for (const [type, dir] of Object.entries(elsewhere)) execFileSync('mount', ['-t', type, 'none', dir])
  try {
    using manifests = new Manifests(TWO_NODES)
    await using lab = await Lab.up({ name: 'tmounts', resources: manifests.dir, agents: false, servers: false })
    const mounts = await lab.mustRun('node/a', ['cat', '/proc/self/mounts'])
    expect(
      mounts
        .split('\n')
        .map((line) => line.split(' '))
        .filter(([, , type]) => type === 'cgroup2' || type === 'bpf')
        .map(([, dir, type]) => `${type} ${dir}`),
    ).toEqual(['cgroup2 /sys/fs/cgroup', 'bpf /sys/fs/bpf'])
  } finally {
    for (const dir of Object.values(elsewhere)) {
      execFileSync('umount', [dir])
      rmdirSync(dir)
    }
  }
})
