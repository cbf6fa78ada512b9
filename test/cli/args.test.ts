// SPDX-License-Identifier: Apache-2.0
/** Arguments of netplanectl, and that its page has all of them. Layer: test. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { DEFAULT_PIN_DIR } from '#agent/maps/catalogue.ts'
import { readArgs } from '../../cli/args.ts'
import { clusterCommands } from '../../cli/resources/commands.ts'
import { clusterUsage, commands, nodeUsage, questions } from '../../cli/commands.ts'

describe('readArgs', () => {
  test.each([
    ['', 'help'],
    ['help', 'help'],
    ['--help', 'help'],
    ['bpf nat --help', 'help'],
    ['get --help', 'help'],
    ['apply -h', 'help'],
    ['--version', 'own version'],
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
    ['explain a/b', 'needs FROM and TO'],
    ['explain --with x a/b c/d:1', '--with: needs --resources'],
    ['explain --packet tcp', '"tcp": is no flow'],
    ['explain a/b c/d:1 --protocol esp', 'protocol: "esp" is none of tcp'],
    ['explain a/b c/d:1 --source-port x', 'source port: "x" is no number'],
    ['policy check', 'policy check: needs FILE|DIR'],
    ['policy check x --flows y', '--flows: needs --resources'],
  ])('"%s" is refused: %s', (line, reason) => {
    expect(() => readArgs(line.split(' '))).toThrow(reason)
  })
})

describe('questions', () => {
  test('of manifests, and of this node', () => {
    const line = 'explain --resources r --with w --protocol udp --source-port 53 --entry n1 --interface eth1 --json a/b svc/c/d:e'
    expect(readArgs(line.split(' '))).toMatchObject({
      kind: 'explain',
      resources: 'r',
      candidate: 'w',
      query: { protocol: 'udp', sourcePort: 53, from: { kind: 'pod' }, to: { kind: 'service', port: 'e' } },
      entry: 'n1',
      device: 'eth1',
      json: true,
    })
    expect(readArgs(['explain', '--packet', 'tcp 10.0.0.1:1234 > 10.96.0.1:80'])).toMatchObject({
      resources: undefined,
      pins: DEFAULT_PIN_DIR,
      query: { sourcePort: 1234 },
    })
    expect(readArgs(['policy', 'check', '--help'])).toEqual({ kind: 'help' })
  })
})

test('the pages have the usage, and every command a part of its own', () => {
  const page = (name: string): string => readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8')
  const parts = (text: string): readonly (string | undefined)[] => [...text.matchAll(/^## `([\w -]+)`/gm)].map(([, name]) => name)
  expect(page('netplanectl')).toContain(`\n\`\`\`text\n${nodeUsage()}\`\`\`\n`)
  expect(parts(page('netplanectl'))).toEqual([...commands, ...questions].map(({ name }) => name))
  expect(page('netplanectl-cluster')).toContain(`\n\`\`\`text\n${clusterUsage()}\`\`\`\n`)
  expect(parts(page('netplanectl-cluster'))).toEqual(clusterCommands.map(({ name }) => name))
})
