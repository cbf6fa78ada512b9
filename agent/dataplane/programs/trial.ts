// SPDX-License-Identifier: Apache-2.0
/** Asks the kernel itself whether it can run us: vendors backport, and versions tell little. Layer: agent/dataplane. */
import { BpfObject } from '#native'
import { errorText } from '#lib/base/errors.ts'
import { missingHelpers, type Features } from './kernel-features.ts'
import { objectFileName } from './objects.ts'

/** Why it refuses the programs that ask most of a kernel; undefined: it takes them. They are loaded, attached to
 * nothing, and let go; seconds on a slow machine. `folder` has the objects. */
export async function trialRefusal(folder: string, features: Features): Promise<string | undefined> {
  const object = BpfObject.open(`${folder}/${objectFileName('tc', features)}`)
  try {
    object.setMaxEntries('np_ct', 1)
    object.stubHelpers(missingHelpers(features))
    await object.load()
    return undefined
  } catch (thrown) {
    return refusalText(errorText(thrown))
  } finally {
    object.close()
  }
}

/** Without the log of type information that the kernel did not take. libbpf goes on without it: it comes first, is
 * long, and is no cause. */
export function refusalText(text: string): string {
  return text.replace(/libbpf: BTF loading error.*?BTF is optional, ignoring\.(; )?/s, '')
}
