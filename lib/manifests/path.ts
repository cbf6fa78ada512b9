// SPDX-License-Identifier: Apache-2.0
/** Paths into a document, as text in messages and as steps for walking. Layer: lib/manifests. */

/** A field's name or an index. */
export type Step = string | number

/** "spec.ports[1].nodePort" and "metadata.labels['a.b']" → steps. */
export function pathSteps(path: string): readonly Step[] {
  const steps: Step[] = []
  for (const [, quoted, index, name] of path.matchAll(/\['([^']*)'\]|\[(\d+)\]|([^.[\]]+)/g)) {
    if (quoted !== undefined) steps.push(quoted)
    else if (index !== undefined) steps.push(Number(index))
    else if (name !== undefined) steps.push(name)
  }
  return steps
}

/** 1 for the first line. */
export function lineAt(text: string, offset: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at >= 0 && at < offset; at = text.indexOf('\n', at + 1)) line++
  return line
}
