// SPDX-License-Identifier: Apache-2.0
/** Nodes that change from the version before this one, and back to it, under load. Layer: test. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '#lib/base/os/package.ts'
import { RESOURCES } from '../../../bench/loss/cluster.ts'
import { upgrade } from '../../../bench/loss/upgrade.ts'

const NOTHING = { lost: 0, refused: 0 }

test(
  'nodes that are upgraded and downgraded one after the other lose no packet and refuse no connection',
  async () => {
    const figures = await upgrade(join(packageRoot(), RESOURCES), 1)
    // what a load loses by itself says nothing about a change
    for (const { id, control } of figures) expect({ id, ...control }, 'the control').toMatchObject({ id, ...NOTHING })
    expect(figures.map(({ id, fault }) => ({ id, ...fault }))).toMatchObject(['upgrade', 'downgrade'].map((id) => ({ id, ...NOTHING })))
  },
  20 * 60_000,
)
