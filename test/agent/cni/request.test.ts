// SPDX-License-Identifier: Apache-2.0
/** What runtimes may ask for, and whatever else comes. RUNS=1000000 for a long look. Layer: test. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatAddr } from '#lib/base/ip.ts'
import { isObject } from '#lib/base/object.ts'
import { CniError, errorAnswer } from '#agent/cni/cni-error.ts'
import { parseRequest, versionOf } from '#agent/cni/request.ts'

type Fields = Readonly<Record<string, unknown>>

const RUNS = Number(process.env['RUNS'] ?? 2000)
const ARGS = 'IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0;K8S_POD_UID=x=y'
const CALL = { command: 'ADD', containerId: 'c1', netns: '/run/netns/a', ifname: 'eth0', args: ARGS, path: '/opt/cni/bin' }
const CONFIG = { cniVersion: '1.0.0', name: 'netplane', type: 'netplane-cni' }
const C1 = { containerID: 'c1', ifname: 'eth0' }
const C2 = { containerID: 'c2', ifname: 'eth0' }
const NO_ID = 'is missing, or is none'
const NO_IFNAME = 'is missing, or cannot be the name of an interface'

function line(call: Fields = {}, config: Fields = {}): string {
  return JSON.stringify({ ...CALL, config: JSON.stringify({ ...CONFIG, ...config }), ...call })
}

describe('requests', () => {
  test('to add a pod', () => {
    expect(parseRequest(line({}, { mtu: 1400, timeoutSeconds: 5 }))).toMatchObject({
      command: 'ADD',
      sandbox: { containerId: 'c1', ifname: 'eth0', netns: '/run/netns/a', namespace: 'default', pod: 'web-0', uid: 'x=y' },
      config: { cniVersion: '1.0.0', mtu: 1400, timeoutMs: 5000, ipam: undefined },
      environment: { path: '/opt/cni/bin' },
    })
  })

  test('with an MTU below that of IPv6: whether its addresses allow it is not known yet', () => {
    expect(parseRequest(line({}, { mtu: 576 })).config.mtu).toBe(576)
  })

  test("to check it, with what was answered then; to remove it, which needs no pod's name", () => {
    const prevResult = { ips: [{ address: '10.0.0.1/32' }, { address: 'fd00::1/128' }] }
    const request = parseRequest(line({ command: 'CHECK' }, { prevResult }))
    expect(request.command === 'CHECK' && request.addresses.map(formatAddr)).toEqual(['10.0.0.1', 'fd00::1'])
    expect(parseRequest(line({ command: 'DEL', netns: '', args: '' }))).toMatchObject({ command: 'DEL', sandbox: { containerId: 'c1' } })
  })

  test('addresses of another plugin', () => {
    expect(parseRequest(line({}, { ipam: { type: 'host-local' } })).config.ipam).toBe('host-local')
    expect(parseRequest(line({}, { ipam: { type: 'netplane' } })).config.ipam).toBeUndefined()
    expect(parseRequest(line({}, { runtimeConfig: { portMappings: [] } }))).toMatchObject({ command: 'ADD' })
  })

  test.each<[string, Fields, readonly string[]]>([
    ['a list', { 'cni.dev/valid-attachments': [C1] }, ['c1']],
    ['the older key', { 'cni.dev/attachments': [C1] }, ['c1']],
    ['both keys, one as the other', { 'cni.dev/valid-attachments': [C1], 'cni.dev/attachments': [C1] }, ['c1', 'c1']],
    ['both keys, which differ', { 'cni.dev/valid-attachments': [C1], 'cni.dev/attachments': [C2] }, ['c1', 'c2']],
    ['null, as a runtime without attachments has it', { 'cni.dev/valid-attachments': null }, []],
    ['null at both keys', { 'cni.dev/valid-attachments': null, 'cni.dev/attachments': null }, []],
    ['null beside a list', { 'cni.dev/valid-attachments': null, 'cni.dev/attachments': [C2] }, ['c2']],
  ])('GC reads what is valid from %s', (_, config, expected) => {
    const request = parseRequest(line({ command: 'GC' }, config))
    expect(request.command === 'GC' && request.valid.map(({ containerId }) => containerId)).toEqual(expected)
  })

  test.each<[Fields, Fields, string]>([
    [{ command: 'PLEASE' }, {}, '4 CNI_COMMAND: "PLEASE" is not known here'],
    [{ containerId: '' }, {}, '4 CNI_CONTAINERID: is missing, or is none'],
    [{ containerId: '../etc' }, {}, '4 CNI_CONTAINERID: is missing, or is none'],
    [{ ifname: 'a/b' }, {}, '4 CNI_IFNAME: is missing, or cannot be the name of an interface'],
    [{ ifname: '..' }, {}, '4 CNI_IFNAME: is missing, or cannot be the name of an interface'],
    [{ netns: 'a' }, {}, '4 CNI_NETNS: must be the path of a network namespace'],
    [{ args: 'K8S_POD_NAME=web' }, {}, '4 CNI_ARGS: K8S_POD_NAMESPACE is missing, or is no name'],
    [{ args: ARGS.replace('web-0', '../x') }, {}, '4 CNI_ARGS: K8S_POD_NAME is missing, or is no name'],
    [{ config: 'x' }, {}, '6 the network configuration is no JSON object'],
    [{}, { cniVersion: '0.2.0' }, '1 cniVersion: "0.2.0" is not one of 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0'],
    [{}, { name: '' }, '7 name: is missing'],
    [{}, { mtu: 67 }, '7 mtu: must be 68..65535'],
    [{}, { timeoutSeconds: '5' }, '7 timeoutSeconds: must be 1..80'],
    [{}, { ipam: { type: '../sh' } }, '7 ipam.type: must be the name of a plugin'],
    [{}, { ipam: { type: '..' } }, '7 ipam.type: must be the name of a plugin'],
    [
      {},
      { runtimeConfig: { portMappings: [{ hostPort: 80 }] } },
      '7 runtimeConfig.portMappings: the pod has hostPorts, and there is no portmap in the folder of CNI plugins',
    ],
    [{ command: 'CHECK' }, {}, '7 prevResult: is missing'],
    [{ command: 'CHECK' }, { prevResult: { ips: [{}] } }, '7 prevResult.ips[0].address: is no IP address'],
    [{ command: 'GC' }, {}, '7 cni.dev/valid-attachments: is missing'],
    [{ command: 'GC' }, { 'cni.dev/valid-attachments': 'c1' }, '7 cni.dev/valid-attachments: must be a list'],
    [{ command: 'GC' }, { 'cni.dev/valid-attachments': [C1, null] }, `7 cni.dev/valid-attachments[1].containerID: ${NO_ID}`],
    [{ command: 'GC' }, { 'cni.dev/attachments': [{ ...C1, containerID: 5 }] }, `7 cni.dev/attachments[0].containerID: ${NO_ID}`],
    [{ command: 'GC' }, { 'cni.dev/valid-attachments': [{ ...C1, ifname: '' }] }, `7 cni.dev/valid-attachments[0].ifname: ${NO_IFNAME}`],
    [{ command: 'GC' }, { 'cni.dev/valid-attachments': [C1], 'cni.dev/attachments': 5 }, '7 cni.dev/attachments: must be a list'],
  ])('%j with %j is refused', (call, config, reason) => {
    const said = (): unknown => {
      try {
        return parseRequest(line(call, config))
      } catch (thrown) {
        return JSON.parse(errorAnswer(thrown, '1.0.0'))
      }
    }
    expect(said()).toEqual({ cniVersion: '1.0.0', code: Number(reason.slice(0, 1)), msg: reason.slice(2) })
  })
})

test('whatever comes is a request, or refused as CNI has it', () => {
  const word = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 20 }),
    fc.constantFrom(...Object.values(CALL), ...Object.keys(CONFIG), '1.1.0', 'DEL', 'CHECK', 'GC', 'STATUS', ARGS),
  )
  const value = fc.oneof(word, fc.jsonValue({ maxDepth: 3 }))
  const fields = (...keys: readonly string[]): fc.Arbitrary<Fields> =>
    fc.record(Object.fromEntries(keys.map((key) => [key, value])), { requiredKeys: [] })
  const lists = ['cni.dev/valid-attachments', 'cni.dev/attachments']
  const config = fields('cniVersion', 'name', 'mtu', 'ipam', 'timeoutSeconds', 'prevResult', ...lists, '__proto__').map((some) =>
    JSON.stringify({ ...CONFIG, ...some }),
  )
  const call = fc
    .tuple(fields(...Object.keys(CALL)), fc.oneof(config, word))
    .map(([some, text]) => JSON.stringify({ ...CALL, ...some, config: text }))
  fc.assert(
    fc.property(fc.oneof({ arbitrary: call, weight: 4 }, fc.string({ unit: 'binary' })), (text) => {
      try {
        const request = parseRequest(text)
        if ('sandbox' in request) expect(request.sandbox.containerId).toMatch(/^[a-zA-Z0-9][\w.-]*$/)
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(CniError)
        expect(isObject(JSON.parse(errorAnswer(thrown, versionOf(text))))).toBe(true)
      }
    }),
    { numRuns: RUNS },
  )
})
