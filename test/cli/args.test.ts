// SPDX-License-Identifier: Apache-2.0
/** Arguments of netplanectl, and that its page has all of them. Layer: test. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { DEFAULT_PIN_DIR } from '#agent/maps/catalogue.ts'
import { readArgs } from '../../cli/args.ts'
import { commands, usage } from '../../cli/commands.ts'

describe('readArgs', () => {
  test.each([
    ['', 'help'],
    ['help', 'help'],
    ['--help', 'help'],
    ['bpf nat --help', 'help'],
    ['version', 'version'],
    ['--version', 'version'],
  ])('"%s" is %s', (line, kind) => {
    expect(readArgs(line.split(' ').filter((word) => word !== ''))).toEqual({ kind })
  })

  test.each(commands.map(({ name }) => name))('%s reads the pins of the agent', (name) => {
    expect(readArgs(name.split(' '))).toMatchObject({ kind: 'report', command: { name }, pins: DEFAULT_PIN_DIR, json: false, all: false })
    expect(readArgs([...name.split(' '), '--json', '--pins', '/x'])).toMatchObject({ json: true, pins: '/x' })
  })

  test.each([
    ['bpf', 'command: "bpf" is none'],
    ['bpf maps', 'command: "bpf maps" is none'],
    ['bpf nat more', "bpf nat: Unexpected argument 'more'"],
    ['bpf routes --addr 10.0.0.1', "bpf routes: Unknown option '--addr'"],
    ['bpf conntrack --port 70000', '--port: "70000" is no port'],
    ['bpf conntrack --proto tpc', '--proto: "tpc" is no protocol'],
    ['bpf conntrack --addr 10.0.0', '--addr: "10.0.0" is neither'],
  ])('"%s" is refused: %s', (line, reason) => {
    expect(() => readArgs(line.split(' '))).toThrow(reason)
  })
})

test('the page has the usage, and every command a part of its own', () => {
  const page = readFileSync(new URL('../../docs/netplanectl.md', import.meta.url), 'utf8')
  expect(page).toContain(`\n\`\`\`text\n${usage()}\`\`\`\n`)
  expect([...page.matchAll(/^## `(bpf \w+)`/gm)].map(([, name]) => name)).toEqual(commands.map(({ name }) => name))
})
