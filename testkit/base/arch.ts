// SPDX-License-Identifier: Apache-2.0
/** What differs between the machine kinds we run in a VM. Layer: testkit. */
import { arch } from 'node:os'

export type Arch = 'amd64' | 'arm64'

export interface ArchFacts {
  /** Node's own word for it */
  readonly node: 'x64' | 'arm64'
  readonly triplet: string
  readonly emulator: string
  /** arguments that choose the machine; everything without hardware help, so that every host gives the same result */
  readonly machine: readonly string[]
  readonly console: string
}

export const FACTS: { readonly [A in Arch]: ArchFacts } = {
  amd64: {
    node: 'x64',
    triplet: 'x86_64-linux-gnu',
    emulator: 'qemu-system-x86_64',
    machine: ['-machine', 'pc', '-cpu', 'max'],
    console: 'ttyS0',
  },
  arm64: {
    node: 'arm64',
    triplet: 'aarch64-linux-gnu',
    emulator: 'qemu-system-aarch64',
    // The architected pointer authentication is emulated at a third of the speed.
    machine: ['-machine', 'virt', '-cpu', 'max,pauth-impdef=on'],
    console: 'ttyAMA0',
  },
}

export function parseArch(text: string): Arch {
  if (text === 'amd64' || text === 'arm64') return text
  if (text === 'x64' || text === 'x86_64') return 'amd64'
  if (text === 'aarch64') return 'arm64'
  throw new Error(`unknown architecture ${text}: amd64 or arm64`)
}

export function hostArch(): Arch {
  return parseArch(arch())
}
