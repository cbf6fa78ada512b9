// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { objectFileName, OBJECTS } from '#agent/dataplane/programs/objects.ts'

test.each([
  ['yes', ['tc.bpf.o', 'connect.bpf.o', 'xdp.bpf.o']],
  ['no', ['tc.floor.bpf.o', 'connect.bpf.o', 'xdp.floor.bpf.o']],
  ['unknown', ['tc.floor.bpf.o', 'connect.bpf.o', 'xdp.floor.bpf.o']],
] as const)('where functions verified by themselves are there: %s, objects for such a kernel are loaded', (global_functions, files) => {
  expect(OBJECTS.map((name) => objectFileName(name, { global_functions }))).toEqual(files)
})
