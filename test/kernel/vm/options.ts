// SPDX-License-Identifier: Apache-2.0
/** Understands the command line of test/kernel/run. Layer: test. */
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { hostArch, parseArch } from '../../../testkit/base/arch.ts'
import type { GivenKernel } from './kernel.ts'
import type { Work } from './works.ts'

export const USAGE = `usage: test/kernel/run [NAME...]                    kernels of test/kernel/vm/kernels.json; without a name those that CI boots
       test/kernel/run --all                         all of them, and the demo on those that kernels.json names for it
       test/kernel/run --kernel IMAGE [--modules DIR] [--arch amd64|arm64]
                                                     any image; modules lie anywhere below DIR, without it all is built in
       test/kernel/run --fetch [NAME...]             only fill the cache
       test/kernel/run --demo [NAME... | --kernel IMAGE]
                                                     the demo, with its agents, in the place of the tests: on kernels of this
                                                     machine's architecture that have all built in, as bridges
       test/kernel/run --preflight [NAME... | --kernel IMAGE]
                                                     the preflight's containers and what the operator reads of them instead
       --timeout SECONDS a machine (900, with the demo 2400)   --payload FILE.ts instead of test/kernel/vm/payload/tests.ts
       KERNELS=DIR where images of old kernels lie (../shared/kernels)`

interface Common {
  /** milliseconds for one machine */
  readonly timeouts: Readonly<Record<Work, number>>
  /** sources of the programs that run inside */
  readonly payloads: Readonly<Record<Work, string>>
  /** instead of the tests */
  readonly only: Exclude<Work, 'tests'> | undefined
  /** the folder of images */
  readonly images: string
}

export type Options = Common &
  (
    | { readonly kind: 'table' | 'fetch'; readonly names: readonly string[]; readonly all: boolean }
    | { readonly kind: 'given'; readonly kernel: GivenKernel }
  )

/** undefined when only the usage is asked for; throws with the usage when the arguments make no sense. */
export function parseOptions(args: readonly string[], top: string): Options | undefined {
  const { values, positionals } = parseStrictly(args)
  if (values.help === true) return undefined
  const others = [...(values.demo === true ? (['demo'] as const) : []), ...(values.preflight === true ? (['preflight'] as const) : [])]
  const [only] = others
  if (others.length > 1 || (only !== undefined && (values.fetch === true || values.payload !== undefined)))
    throw new Error(`--${others.join(' and --')}: one payload alone\n${USAGE}`)
  const payload = (work: Work): string => join(top, `test/kernel/vm/payload/${work}.ts`)
  const short = milliseconds(values.timeout ?? '900')
  const common = {
    timeouts: { tests: short, demo: milliseconds(values.timeout ?? '2400'), preflight: short },
    payloads: { tests: values.payload ?? payload('tests'), demo: payload('demo'), preflight: payload('preflight') },
    only,
    images: resolve(top, process.env['KERNELS'] ?? '../shared/kernels'),
  }
  if (values.kernel === undefined) {
    if (values.modules !== undefined || values.arch !== undefined) throw new Error(`--modules and --arch go with --kernel\n${USAGE}`)
    return { ...common, kind: values.fetch === true ? 'fetch' : 'table', names: positionals, all: values.all === true }
  }
  if (positionals.length > 0 || values.fetch === true || values.all === true) throw new Error(`--kernel stands alone\n${USAGE}`)
  const arch = values.arch === undefined ? hostArch() : parseArch(values.arch)
  const modules = values.modules === undefined ? {} : { modulesDir: values.modules }
  return { ...common, kind: 'given', kernel: { image: values.kernel, arch, ...modules } }
}

function milliseconds(text: string): number {
  const seconds = Number(text)
  if (!(seconds > 0)) throw new Error(`--timeout ${text} is not a number of seconds\n${USAGE}`)
  return seconds * 1000
}

function parseStrictly(args: readonly string[]) {
  const option = { type: 'string' } as const
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        kernel: option,
        modules: option,
        arch: option,
        timeout: option,
        payload: option,
        all: { type: 'boolean' },
        fetch: { type: 'boolean' },
        demo: { type: 'boolean' },
        preflight: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    })
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${USAGE}`, { cause: error })
  }
}
