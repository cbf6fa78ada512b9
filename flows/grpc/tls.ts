// SPDX-License-Identifier: Apache-2.0
/** Certificates of the aggregator, and the authority of those who ask it. Layer: flows. */
import { readFileSync } from 'node:fs'

/** Files in PEM. */
export interface TlsFiles {
  readonly cert: string
  readonly key: string
  /** of nodes and other clients */
  readonly ca: string
}

/** Throws Node's errors. */
export function readTls({ cert, key, ca }: TlsFiles): { readonly cert: Buffer; readonly key: Buffer; readonly ca: Buffer } {
  return { cert: readFileSync(cert), key: readFileSync(key), ca: readFileSync(ca) }
}
