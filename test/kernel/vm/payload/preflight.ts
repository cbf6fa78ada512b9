// SPDX-License-Identifier: Apache-2.0
/** What runs inside a kernel VM with --preflight: the preflight's containers, and what the operator's status says of
 * this machine then. Layer: test. */
import { askThisMachine } from '../../preflight/containers.ts'
import { expectedSentences, putInTheWay } from '../../preflight/in-the-way.ts'

const ADDRESS = '198.51.100.1'

putInTheWay(ADDRESS)
const expected = expectedSentences(ADDRESS)
const { conditions, messages } = askThisMachine(ADDRESS)
for (const [name, message] of messages) console.log(`facts: ${name} told ${message}`)
const [available, , degraded] = conditions
console.log(`facts: NetplaneStatus preflight: ${degraded?.reason ?? ''}: ${degraded?.message ?? ''}`)
const text = degraded?.message ?? ''
const failures = [
  ...(available?.status === 'False' && degraded?.status === 'True' && degraded.reason === 'Blocked'
    ? []
    : [`the status does not refuse the node: ${JSON.stringify(conditions)}`]),
  ...expected.filter((sentence) => !sentence.test(text)).map((sentence) => `the status does not say ${String(sentence)}`),
]
for (const failure of failures) console.log(`FAIL ${failure}`)
console.log(`${1 + expected.length - failures.length} passed, ${failures.length} failed`)
process.exitCode = failures.length === 0 ? 0 : 1
