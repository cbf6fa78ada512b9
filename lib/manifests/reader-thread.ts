// SPDX-License-Identifier: Apache-2.0
/** The thread in which `read-files.ts` has files read: answers each list with its first part. Layer: lib/manifests. */
import { parentPort } from 'node:worker_threads'
import { readPart, type FilesToRead } from './read-part.ts'

parentPort?.on('message', (asked: FilesToRead) => {
  parentPort?.postMessage(readPart(asked))
})
