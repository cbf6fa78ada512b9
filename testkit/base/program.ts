// SPDX-License-Identifier: Apache-2.0
/** The command lines of our programs in tests. Layer: testkit. */
import { join } from 'node:path'
import { nodeCommand, packageRoot } from '#lib/base/os/package.ts'

/** Runs the program of this folder. `make test` has built it just now, and so it starts in two thirds of the time; a
 * test that is run by itself takes the source, for an edit to count at once. */
export function programCommand(folder: 'agent' | 'cli' | 'flows'): readonly string[] {
  const isBuilt = process.env['NETPLANE_BUILT'] === 'true'
  return nodeCommand(join(packageRoot(), isBuilt ? `dist/${folder}/main.js` : `${folder}/main.ts`))
}
