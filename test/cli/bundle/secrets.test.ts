// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest'
import { withoutSecrets } from '../../../cli/bundle/secrets.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'

const TOKEN = 'eyJhbGciOiJSUzI1NiIsImtpZCI6IngifQ.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl'
const PEM = (what: string): string => `-----BEGIN ${what}-----\nMIIEpAIBAAKCAQEA\nq2xvbmc=\n-----END ${what}-----`

test.each([
  ['a token by itself', `token read: ${TOKEN} ok`],
  ['a header', `Authorization: Bearer abcdef0123456789`],
  ['a key', `x\n${PEM('RSA PRIVATE KEY')}\ny`],
  ['a key whose end is cut off', PEM('EC PRIVATE KEY').slice(0, 50)],
  ['a certificate', PEM('CERTIFICATE')],
  [
    'a kubeconfig',
    `users:\n- name: a\n  user:\n    client-key-data: LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t\n    token: abc0123456789\n    password: 'hunter 22'`,
  ],
  ['a secret as JSON', `{"kind":"Secret","password": "a\\"b hunter22", "tls.privateKey":"hunter22"}`],
  ['a flag and its value', 'agent --api-token hunter22 --log-level debug'],
  ['an address with a password', 'https://admin:hunter22@10.0.0.1:6443/'],
])('%s is left out', (_, text) => {
  const left = withoutSecrets(text)
  expect(left).toContain('[left out]')
  expect(left).not.toMatch(/hunter|MIIE|q2xv|LS0tLS1C|c2lnbmF0|eyJ|abcdef0123456789|abc0123456789/)
})

test('a long word does not take for ever', async () => {
  await withinBestOfThree(5000, () => {
    const began = performance.now()
    withoutSecrets('a'.repeat(1 << 20))
    return Promise.resolve(performance.now() - began)
  })
})

test('what else there is stays', () => {
  const text =
    '{"addr":"10.0.0.1","rules":"Profile/kns.shop egress 0","reason":"no token file: ENOENT","chain":"KUBE-SVC-TCOU7JCQXEZGVUNU"}\n'
  expect(withoutSecrets(text)).toBe(text)
})
