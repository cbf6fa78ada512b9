// SPDX-License-Identifier: Apache-2.0
/** Headers of the programs. Layer: test. */
import { globSync } from 'node:fs'
import { expect, test } from 'vitest'
import { checkC, INCLUDE } from '../support/compiled.ts'

test.each(globSync('**/*.h', { cwd: INCLUDE }).sort())('%s includes what it uses', (header) => {
  expect(() => {
    checkC(`#include "${header}"\n`)
  }).not.toThrow()
})

test.each(['tc', 'xdp', 'connect'])('%s compiles as a program of `make trace`', (name) => {
  expect(() => {
    checkC(`#define NP_TRACE\n#include "../${name}.bpf.c"\n`)
  }).not.toThrow()
})
