// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { objectFileName, OBJECTS } from '#agent/dataplane/programs/objects.ts'

test.each([
  ['yes', ['workload.bpf.o', 'host.bpf.o', 'connect.bpf.o', 'xdp.bpf.o']],
  ['no', ['workload.floor.bpf.o', 'host.floor.bpf.o', 'connect.bpf.o', 'xdp.floor.bpf.o']],
  ['unknown', ['workload.floor.bpf.o', 'host.floor.bpf.o', 'connect.bpf.o', 'xdp.floor.bpf.o']],
] as const)('where functions verified by themselves are there: %s, objects for such a kernel are loaded', (global_functions, files) => {
  expect(OBJECTS.map((name) => objectFileName(name, { global_functions }))).toEqual(files)
})
