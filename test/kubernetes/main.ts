// SPDX-License-Identifier: Apache-2.0
/** Builds Kubernetes' programs, unless they are in the cache directory already, and says where they are. Layer: test. */
import { builtPrograms, kubernetesPrograms } from './programs.ts'

try {
  if (builtPrograms() === undefined) console.log('building Kubernetes: five to fifteen minutes, once')
  const began = performance.now()
  const folder = await kubernetesPrograms()
  console.log(`Kubernetes: ${folder} (${((performance.now() - began) / 1000).toFixed(0)} s)`)
} catch (thrown) {
  console.error(`test/kubernetes: ${thrown instanceof Error ? thrown.message : String(thrown)}`)
  process.exitCode = 1
}
