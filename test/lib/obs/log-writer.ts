// SPDX-License-Identifier: Apache-2.0
/** A process that logs as many lines as it is told, says on standard error that it has, logs when it is told to, and
 * ends. Layer: test. */
import { once } from 'node:events'
import { createLog } from '#lib/obs/log.ts'

const [lines = '0'] = process.argv.slice(2)
await using log = createLog({ level: 'info' })
for (let line = 0; line < Number(lines); line++) log.info({ line, rest: 'x'.repeat(100) }, 'filled')
process.stderr.write('through\n')
await once(process.stdin, 'data')
process.stdin.destroy()
log.info({}, 'ended')
