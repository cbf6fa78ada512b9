// SPDX-License-Identifier: Apache-2.0
/** What is told of a kernel that refuses the programs. Layer: test. */
import { expect, test } from 'vitest'
import { refusalText } from '#agent/dataplane/programs/trial.ts'

test('type information that old kernels refuse is not told as the cause', () => {
  const end = "libbpf: prog 'slow': BPF program load failed: Argument list too long; libbpf: failed to load object 'workload')"
  // as 4.18.0-147 and 5.3.1 have it
  const log = 'libbpf: BTF loading error: -22; libbpf: -- BEGIN BTF LOAD LOG ---; magic: 0xeb9f; Invalid string section; '
  const optional = '-- END BTF LOAD LOG --; libbpf: Error loading .BTF into kernel: -22. BTF is optional, ignoring.; '
  const start = 'bpf_object__load: Argument list too long ('
  expect(refusalText(`${start}${log}${optional}${end}`)).toBe(`${start}${end}`)
  expect(refusalText(`${start}${end}`)).toBe(`${start}${end}`)
})
