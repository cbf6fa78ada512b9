// SPDX-License-Identifier: Apache-2.0
/** Where the processes of a run of tests keep what Node has compiled. Layer: testkit. */

const VARIABLE = 'NODE_COMPILE_CACHE'

/** For the environment of a process of ours that is to have little else of this one's. Without it each compiles all of
 * its modules anew: half a second of a processor. */
export function compileCache(): Readonly<Record<string, string>> {
  const folder = process.env[VARIABLE]
  return folder === undefined ? {} : { [VARIABLE]: folder }
}
