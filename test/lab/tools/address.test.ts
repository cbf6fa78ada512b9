// SPDX-License-Identifier: Apache-2.0
/** Endpoints on our tools' command lines. */
import { expect, test } from 'vitest'
import { endpointText, parseEndpoint, plainAddress } from '../../../lab/tools/address.ts'

test.each(['tcp:10.0.0.1:80', 'udp:[fd00::1]:53'])('%s there and back', (text) => {
  expect(endpointText(parseEndpoint(text))).toBe(text)
})

test.each(['', '10.0.0.1:80', 'tcp:fd00::1:80', 'sctp:10.0.0.1:80', 'tcp:10.0.0.1'])('%j is none', (text) => {
  expect(() => parseEndpoint(text)).toThrow('not an endpoint')
})

test('mapped addresses of dual-stack sockets are IPv4', () => {
  expect([plainAddress('::ffff:10.0.0.1'), plainAddress('fd00::1')]).toEqual(['10.0.0.1', 'fd00::1'])
})
