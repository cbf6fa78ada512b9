// SPDX-License-Identifier: Apache-2.0
/** Programs and maps of ours in the kernel, pinned or not. They are the machine's and no node's, so only a test that
 * runs alone can say that none is left. Layer: test. */
import { BpfMap, BpfObject, BpfProgram } from '#native'
import { errorCode } from '#lib/base/errors.ts'
import { waitFor } from '../../../lab/wait.ts'
import { objectPath } from '../../../testkit/packets/objects.ts'
import { HANG_MS } from '../../../testkit/base/hang.ts'

const KINDS = { map: BpfMap, program: BpfProgram } as const
type Kind = keyof typeof KINDS
type Ids = Readonly<Record<Kind, ReadonlySet<number>>>

interface KernelObject {
  readonly kind: Kind
  readonly id: number
  readonly name: string
}

/** The kernel frees what is no longer used a while later. */
const FREED_MS = 1000
/** of names, in the kernel */
const NAME_LENGTH = 15

/** All that there are now, ours or not. */
export function kernelIds(): Ids {
  return { map: new Set(idsOf('map')), program: new Set(idsOf('program')) }
}

/** "map np_ct": of ours, what came after `before` and does not go. */
export async function kernelObjectsLeft(before: Ids): Promise<readonly string[]> {
  // a program array that is opened while the kernel clears it stays for good: by now it has, and each is opened once
  await new Promise((resolve) => setTimeout(resolve, FREED_MS))
  const names = ourNames()
  const ours = (Object.keys(KINDS) as Kind[]).flatMap((kind) =>
    idsOf(kind).flatMap((id) => {
      const name = before[kind].has(id) ? undefined : nameOf(kind, id)
      return name !== undefined && names[kind].has(name) ? [{ kind, id, name }] : []
    }),
  )
  let left: readonly KernelObject[] = ours
  const goes = (): true | undefined => {
    const there = kernelIds()
    left = ours.filter(({ kind, id }) => there[kind].has(id))
    return left.length === 0 ? true : undefined
  }
  await waitFor(goes, { timeoutMs: HANG_MS, everyMs: 200 })
  return left.map(({ kind, name }) => `${kind} ${name}`).sort()
}

/** Opens none of them. */
function idsOf(kind: Kind): readonly number[] {
  const ids: number[] = []
  for (let id = KINDS[kind].nextId(0); id !== undefined; id = KINDS[kind].nextId(id)) ids.push(id)
  return ids
}

/** Undefined: it has gone meanwhile. */
function nameOf(kind: Kind, id: number): string | undefined {
  try {
    const opened = KINDS[kind].openId(id)
    const { name } = opened.info()
    opened.close()
    return name
  } catch (thrown) {
    if (errorCode(thrown) === 'ENOENT') return undefined
    throw thrown
  }
}

/** As the built objects have them. */
function ourNames(): Readonly<Record<Kind, ReadonlySet<string>>> {
  const objects = (['tc', 'connect', 'xdp'] as const).map((name) => BpfObject.open(objectPath(name)))
  const names = {
    map: new Set(objects.flatMap((object) => object.maps().map(({ name }) => name.slice(0, NAME_LENGTH)))),
    program: new Set(objects.flatMap((object) => object.programs().map(({ name }) => name.slice(0, NAME_LENGTH)))),
  }
  for (const object of objects) object.close()
  return names
}
