// SPDX-License-Identifier: Apache-2.0
/** Generations of the real programs. Layer: test. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, describe } from 'vitest'
import { PinnedGenerations } from '#agent/dataplane/pinned-generations.ts'
import { Pins } from '#agent/dataplane/pins.ts'
import { probeFeatures } from '#agent/dataplane/programs/kernel-features.ts'
import { objectFileName } from '#agent/dataplane/programs/objects.ts'
import { generationsContract } from '../../support/contracts/generations-contract.ts'
import { FakeClock } from '../../support/fakes/fake-clock.ts'
import { interfaces } from '../../support/interfaces.ts'
import { objectPath } from '../../../testkit/packets/objects.ts'

const features = probeFeatures()
const folders: string[] = []

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

function folderIn(parent: string, name: string): string {
  const folder = mkdtempSync(join(parent, name))
  folders.push(folder)
  return folder
}

describe('pinned generations', () => {
  generationsContract(() => {
    const objects = join(folderIn(tmpdir(), 'netplane-generations-'), 'objects')
    cpSync(dirname(objectPath('tc')), objects, { recursive: true, filter: (path) => !/\.[ch]$/.test(path) })
    const pins = new Pins(join(folderIn('/sys/fs/bpf', 'np-test-'), 'netplane'))
    const generations = new PinnedGenerations({ pins, objects, features, interfaces: interfaces(), clock: new FakeClock() })
    const refuse = (): void => writeFileSync(join(objects, objectFileName('tc', features)), 'no object')
    const unpin = (): void => {
      rmSync(pins.map('np_ct'))
      for (const id of pins.generations()) rmSync(join(pins.generation(id), 'tc-np_tail'))
    }
    return { generations, refuse, unpin }
  })
})
