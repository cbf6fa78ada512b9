// SPDX-License-Identifier: Apache-2.0
/** Headers of the programs. Layer: test. */
import { globSync } from 'node:fs'
import { expect, test } from 'vitest'
import { checkC, INCLUDE } from '../support/compiled.ts'

/** what an object says of itself before it includes anything */
const HOOKS = '#define NP_HOOK_IN FROM_HOST\n#define NP_HOOK_OUT TO_HOST\n'

test.each(globSync('**/*.h', { cwd: INCLUDE }).sort())('%s includes what it uses', (header) => {
  expect(() => {
    checkC(`${HOOKS}#include "${header}"\n`)
  }).not.toThrow()
})

test.each(['workload', 'host', 'xdp', 'connect'])('%s compiles as a program of `make trace`', (name) => {
  expect(() => {
    checkC(`#define NP_TRACE\n#include "../${name}.bpf.c"\n`)
  }).not.toThrow()
})
