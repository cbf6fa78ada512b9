// SPDX-License-Identifier: Apache-2.0
/** Why a server has refused an object, in a line. Layer: test. */
import { expect, test } from 'vitest'
import { ApiError } from '#lib/api/errors.ts'
import { reasonOf } from '../../../cli/resources/objects.ts'

function refused(said: string, status = 422, reason = 'Invalid'): ApiError {
  return new ApiError({ status, reason, message: `PATCH /x: ${said}`, said })
}

test.each<readonly [string, unknown, string]>([
  ['the words of the server', refused('spec.order: Invalid value'), 'spec.order: Invalid value'],
  [
    'of a patch what is wrong, and not the whole object',
    refused(' "" is invalid: patch: Invalid value: "{\\"spec\\":{\\"ordr\\":5}}": strict decoding error: unknown field "spec.ordr"'),
    'unknown field "spec.ordr"',
  ],
  ['no such kind', refused('', 404, ''), 'the cluster does not know this kind: its definition is in deploy/'],
  ['what is no answer', new Error('away'), 'away'],
])('%s', (_, thrown, wanted) => {
  expect(reasonOf(thrown)).toBe(wanted)
})
