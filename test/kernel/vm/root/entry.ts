// SPDX-License-Identifier: Apache-2.0
/** What a guest's root is made of, before it becomes an archive or a directory. Layer: test. */

/** Paths are relative to the root, without a leading slash. `source` is a file of this machine. */
export type Entry =
  | { readonly kind: 'file'; readonly path: string; readonly source: string; readonly mode: number }
  | { readonly kind: 'bytes'; readonly path: string; readonly content: Uint8Array; readonly mode: number }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'device'; readonly path: string; readonly major: number; readonly minor: number }

/** Adds every missing parent directory, each before its first child; of two entries with one path the first stays. */
export function withParents(entries: readonly Entry[]): Entry[] {
  const seen = new Set<string>()
  const out: Entry[] = []
  const add = (entry: Entry): void => {
    if (seen.has(entry.path)) return
    const slash = entry.path.lastIndexOf('/')
    if (slash > 0) add({ kind: 'directory', path: entry.path.slice(0, slash) })
    seen.add(entry.path)
    out.push(entry)
  }
  for (const entry of entries) add(entry)
  return out
}
