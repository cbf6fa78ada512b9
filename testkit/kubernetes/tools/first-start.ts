// SPDX-License-Identifier: Apache-2.0
/** Starts an API server for the first time, in a network namespace of its own: later ones begin with what it has made.
 * Layer: testkit. */
import { kubernetesPrograms } from '../build/programs.ts'
import { LoopbackCluster } from '../loopback-cluster.ts'

await LoopbackCluster.firstStart(await kubernetesPrograms())
