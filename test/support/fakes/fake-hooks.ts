// SPDX-License-Identifier: Apache-2.0
/** Places for programs in memory; they run the suite in hooks-contract.ts. Layer: test. */
import type { Hooks, LoadedProgram, Place } from '#agent/dataplane/attach/hook.ts'

/** What is `broken` refuses to be written. */
export class FakeHooks implements Hooks<Place> {
  readonly kind = 'fake'
  readonly there = new Map<string, { readonly instance: number; readonly program: number }>()
  readonly broken = new Set<string>()
  readonly gone = new Set<string>()
  readonly calls: string[] = []

  read(place: Place): number | undefined {
    const found = this.there.get(place.key)
    return found?.instance === place.instance ? found.program : undefined
  }

  write(place: Place, program: LoadedProgram): void {
    if (this.gone.has(place.key)) throw Object.assign(new Error('No such device'), { code: 'ENODEV' })
    if (this.broken.has(place.key)) throw new Error('not permitted')
    this.calls.push(`write ${place.key} ${program.id}`)
    this.there.set(place.key, { instance: place.instance, program: program.id })
  }

  clear(key: string): void {
    this.calls.push(`clear ${key}`)
    this.there.delete(key)
  }

  list(): string[] {
    return [...this.there.keys()]
  }
}
