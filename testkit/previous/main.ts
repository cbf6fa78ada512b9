// SPDX-License-Identifier: Apache-2.0
/** Builds the version before this one, unless it is in the cache directory already. Layer: testkit. */
import { previousVersion } from './build.ts'

const { commit } = await previousVersion()
console.log(`the previous version: ${commit}`)
