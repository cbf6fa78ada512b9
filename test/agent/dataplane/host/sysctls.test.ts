// SPDX-License-Identifier: Apache-2.0
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { restoreSysctls, Sysctls, type Wanted } from '#agent/dataplane/host/sysctls.ts'

const FORWARD = 'net/ipv4/ip_forward'
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'netplane-sysctls-'))
  mkdirSync(join(folder, 'sys/net/ipv4'), { recursive: true })
  write('0\n')
})

afterEach(() => {
  rmSync(folder, { recursive: true })
})

function options() {
  return { root: join(folder, 'sys'), stateFile: join(folder, 'run/sysctls.json') }
}

function write(value: string): void {
  writeFileSync(join(folder, 'sys', FORWARD), value)
}

function read(): string {
  return readFileSync(join(folder, 'sys', FORWARD), 'utf8')
}

function apply(wanted: Readonly<Record<string, Wanted>>) {
  const sysctls = new Sysctls(options())
  sysctls.setDesired(wanted)
  return { sysctls, outcome: sysctls.apply() }
}

describe('sysctls', () => {
  test('are set once and put back', () => {
    const { sysctls, outcome } = apply({ [FORWARD]: '1' })
    expect([outcome.done, read().trim(), sysctls.pending()]).toEqual([1, '1', false])
    expect(apply({ [FORWARD]: '1' }).outcome.done).toBe(0)
    expect(restoreSysctls(options())).toEqual({ restored: [`sysctl ${FORWARD} = 0`], failed: [] })
    expect(read().trim()).toBe('0')
    expect(existsSync(options().stateFile)).toBe(false)
  })

  test('of an interface that is gone are no failure, others that are missing are', () => {
    mkdirSync(join(folder, 'sys/net/ipv4/conf'))
    const { outcome } = apply({ 'net/ipv4/conf/gone/rp_filter': '0', 'net/ipv4/none': '1' })
    expect(outcome.failures.map(({ item }) => item)).toEqual(['net/ipv4/none'])
  })

  test('the oldest value is the one that is remembered', () => {
    apply({ [FORWARD]: '1' })
    apply({ [FORWARD]: '2' })
    restoreSysctls(options())
    expect(read().trim()).toBe('0')
  })

  test('what was right already is not put back', () => {
    write('1\n')
    apply({ [FORWARD]: '1' })
    expect(restoreSysctls(options()).restored).toEqual([])
  })

  test('that do not exist stay pending, the others are set', () => {
    const { sysctls, outcome } = apply({ [FORWARD]: '1', 'net/ipv9/x': '1' })
    expect([outcome.done, outcome.failures.map((one) => one.item), sysctls.pending()]).toEqual([1, ['net/ipv9/x'], true])
  })

  test('of an interface that is gone are skipped when all are put back, refused ones are named', () => {
    mkdirSync(join(folder, 'run'))
    mkdirSync(join(folder, 'sys/net/ipv4/conf'))
    writeFileSync(options().stateFile, JSON.stringify({ 'net/ipv4/conf': '0', 'net/gone': '1' }))
    const { restored, failed } = restoreSysctls(options())
    expect([restored, failed]).toEqual([[], [expect.stringMatching(/^sysctl net\/ipv4\/conf = 0: EISDIR/)]])
    expect(JSON.parse(readFileSync(options().stateFile, 'utf8'))).toEqual({ 'net/ipv4/conf': '0' })
  })

  test('reverse path filtering for all is handed down to the interfaces it held for, and put back', () => {
    const file = (name: string): string => join(folder, 'sys/net/ipv4/conf', name, 'rp_filter')
    const all = ['all', 'default', 'eth0', 'eth1', 'npl1']
    const put = (...values: readonly number[]): void =>
      all.forEach((name, at) => {
        mkdirSync(join(file(name), '..'), { recursive: true })
        writeFileSync(file(name), `${values[at] ?? ''}\n`)
      })
    const now = (): string => all.map((name) => readFileSync(file(name), 'utf8').trim()).join(' ')
    const wanted = { 'net/ipv4/conf/all/rp_filter': '0', 'net/ipv4/conf/npl1/rp_filter': '0' }
    put(1, 0, 2, 0, 2)
    expect(apply(wanted).outcome).toEqual({ done: 2, failures: [] })
    expect(now()).toBe('0 1 2 1 0')
    // what the administrator has set for one interface only is no business of ours
    writeFileSync(file('eth1'), '0\n')
    expect(apply(wanted).outcome.done).toBe(0)
    restoreSysctls(options())
    expect(now()).toBe('1 0 2 0 2')
  })

  describe('that have the node forward IPv6', () => {
    const names = ['all/forwarding', 'aa0/accept_ra', 'eth0/accept_ra', 'eth1/accept_ra', 'eth2/accept_ra']
    const paths = names.map((one) => `net/ipv6/conf/${one}`)
    const [forwarding = '', ...accepts] = paths
    const put = (path: string, value: string): void => {
      mkdirSync(join(folder, 'sys', path, '..'), { recursive: true })
      writeFileSync(join(folder, 'sys', path), `${value}\n`)
    }
    const now = (): string => paths.map((path) => readFileSync(join(folder, 'sys', path), 'utf8').trim()).join(' ')
    const raised = Object.fromEntries(accepts.map((path) => [path, { value: '2', insteadOf: '1', because: forwarding }]))

    beforeEach(() => {
      paths.forEach((path, at) => {
        put(path, '01102'[at] ?? '')
      })
    })

    test('come after those by which routers are still listened to, and are put back', () => {
      const { sysctls, outcome } = apply({ [forwarding]: '1', ...raised })
      expect([outcome, now()]).toEqual([{ done: 3, failures: [] }, '1 2 2 0 2'])
      // what the administrator sets is left alone, what the kernel has for a device that came again is not
      put(accepts[0] ?? '', '0')
      put(accepts[1] ?? '', '1')
      sysctls.markStale()
      expect([sysctls.apply().done, now()]).toEqual([1, '1 0 2 0 2'])
      restoreSysctls(options())
      expect(now()).toBe('0 1 1 0 2')
    })

    test('wait while a router would not be listened to', () => {
      rmSync(join(folder, 'sys', accepts[1] ?? ''))
      const { outcome, sysctls } = apply({ [forwarding]: '1', ...raised })
      expect(outcome.failures.map(({ item }) => item)).toEqual([accepts[1]])
      put(accepts[1] ?? '', '1')
      expect([now(), sysctls.apply().done, now()]).toEqual(['0 2 1 0 2', 2, '1 2 2 0 2'])
    })

    test('change nothing where the node did before: it took the word of no router', () => {
      put(forwarding, '1')
      const { sysctls, outcome } = apply({ [forwarding]: '1', ...raised })
      sysctls.lookAtAll()
      expect([outcome, sysctls.check(), now()]).toEqual([{ done: 0, failures: [] }, [], '1 1 1 0 2'])
    })

    test('hold for a device that comes after an agent has set them, and for the next agent', () => {
      apply({ [forwarding]: '1', ...raised })
      put(accepts[1] ?? '', '1')
      expect([apply({ [forwarding]: '1', ...raised }).outcome.done, now()]).toEqual([1, '1 2 2 0 2'])
    })

    test('are as they were once no pod needs them, unless no agent has set them', () => {
      const { sysctls } = apply({ [forwarding]: '1' })
      sysctls.setDesired({ [forwarding]: undefined })
      expect([sysctls.apply().done, now()]).toEqual([1, '0 1 1 0 2'])
      put(forwarding, '1')
      sysctls.setDesired({ [forwarding]: undefined })
      expect([sysctls.apply().done, sysctls.check(), now()]).toEqual([0, [], '1 1 1 0 2'])
    })
  })

  test('a change by another process is put right at the next check', () => {
    const { sysctls } = apply({ [FORWARD]: '1' })
    expect(sysctls.check()).toEqual([])
    write('0\n')
    expect(sysctls.pending()).toBe(false)
    expect(sysctls.check()).toEqual([FORWARD])
    expect(sysctls.pending()).toBe(true)
    expect(sysctls.apply().done).toBe(1)
    expect(read().trim()).toBe('1')
  })

  test('one of an interface, of which there are many, is put right once all are looked at', () => {
    const path = 'net/ipv4/conf/npl1/rp_filter'
    const file = join(folder, 'sys', path)
    mkdirSync(join(file, '..'), { recursive: true })
    writeFileSync(file, '0\n')
    const { sysctls } = apply({ [path]: '1' })
    writeFileSync(file, '0\n')
    expect([sysctls.check(), sysctls.pending()]).toEqual([[], false])
    sysctls.lookAtAll()
    expect([sysctls.check(), sysctls.apply().done]).toEqual([[path], 1])
    writeFileSync(file, '0\n')
    expect([sysctls.check(), sysctls.pending()]).toEqual([[], false])
    sysctls.markStale()
    expect(sysctls.pending()).toBe(true)
    expect(sysctls.apply().done).toBe(1)
  })
})
