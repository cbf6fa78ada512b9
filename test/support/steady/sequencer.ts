// SPDX-License-Identifier: Apache-2.0
/** In which order vitest runs files. Layer: test. */
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** By their paths where they share namespaces, the same on every machine: by itself vitest goes by what it has seen
 * before. Unit tests share nothing, and the longest come first. */
export class Sequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const apart = await super.sort(files.filter(isUnit))
    const shared = files.filter((file) => !isUnit(file)).toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1))
    return [...apart, ...shared]
  }
}

function isUnit({ project }: TestSpecification): boolean {
  return project.name === 'unit'
}
