// SPDX-License-Identifier: Apache-2.0
/** Objects of a bundle. Layer: test. */
import { expect, test } from 'vitest'
import { redacted } from '../../../cli/bundle/redact.ts'

const JWT = 'eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl'

test.each([
  ['a variable', { env: [{ name: 'REGISTRY_PASSWORD', value: 'hunter22' }] }],
  ['a key of a variable', { env: [{ name: 'SIGNING_KEY', value: 'hunter22' }] }],
  ['the word after a flag', { command: ['agent', '--api-token', 'hunter22'] }],
  ['a flag with its value', { args: ['--password=hunter22'] }],
  ['a field', { spec: { token: 'hunter22', clientSecret: { value: 'hunter22' } } }],
  ['a text', { message: `Authorization: Bearer ${JWT}` }],
  ['what was applied', { metadata: { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{"value":"hunter22"}' } } }],
])('%s is left out', (_, value) => {
  expect(JSON.stringify(redacted(value))).not.toMatch(/hunter22|c2lnbmF0|eyJ/)
})

test('what else there is stays, and all of it is JSON', () => {
  const value = {
    metadata: { name: 'a', annotations: { note: 'fine' } },
    spec: {
      imagePullSecrets: [{ name: 'pull' }],
      env: [{ name: 'NODE', value: 'n1' }],
      args: ['--log-level', 'debug', '-v'],
      count: 3,
      none: null,
    },
  }
  expect(redacted({ ...value, metadata: { ...value.metadata, managedFields: [{}] } })).toEqual(value)
})
