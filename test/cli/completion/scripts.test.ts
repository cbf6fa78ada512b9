// SPDX-License-Identifier: Apache-2.0
/** Completion in the shells themselves, against the tables of commands. Layer: test. */
import { spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { readArgs } from '../../../cli/args.ts'
import { bashScript } from '../../../cli/completion/bash.ts'
import { fishScript } from '../../../cli/completion/fish.ts'
import { SHELLS } from '../../../cli/completion/order.ts'
import { commandWords } from '../../../cli/completion/table.ts'
import { zshScript } from '../../../cli/completion/zsh.ts'
import { commands, questions } from '../../../cli/commands.ts'
import { clusterCommands } from '../../../cli/resources/commands.ts'
import { ALL_RESOURCES, V3_RESOURCES } from '../../../cli/resources/kinds.ts'

const ALL = commandWords()
const has = (shell: string): boolean => spawnSync(shell, ['-c', 'true']).status === 0

/** What bash offers for the last of these words, sorted. */
function bashOffers(...words: readonly string[]): readonly string[] {
  const script = `${bashScript(ALL)}
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_netplanectl
printf '%s\\n' "\${COMPREPLY[@]}"`
  return lines('bash', ['-c', script, 'bash', 'netplanectl', ...words])
}

function fishOffers(line: string): readonly string[] {
  const script = `${fishScript(ALL)}\ncomplete -C ${JSON.stringify(`netplanectl ${line}`)}`
  return lines('fish', ['--no-config', '-c', script]).map((text) => text.split('\t')[0] ?? '')
}

function lines(shell: string, args: readonly string[]): readonly string[] {
  const { stdout, stderr } = spawnSync(shell, args, { encoding: 'utf8' })
  expect(stderr).toBe('')
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .sort()
}

const plurals = (resources: readonly { readonly plural: string }[]): readonly string[] => resources.map(({ plural }) => plural).sort()

test('the table has every command of the program', () => {
  expect(ALL.map(({ name }) => name)).toEqual([...clusterCommands, ...commands, ...questions].map(({ name }) => name))
})

describe('bash', () => {
  test('offers commands first, then the second words of those with two', () => {
    expect(bashOffers('')).toEqual([...new Set(ALL.map(({ name }) => name.split(' ')[0])), '--help', '--version'].sort())
    expect(bashOffers('node', '')).toEqual(['bundle', 'checksystem', 'status'])
    expect(bashOffers('co')).toContain('completion')
  })

  test.each(ALL)('offers the flags of $name', ({ name, flags }) => {
    const spelled = flags.flatMap((flag) => [`--${flag.name}`, ...(flag.short === undefined ? [] : [`-${flag.short}`])])
    expect(bashOffers(...name.split(' '), '-')).toEqual(spelled.sort())
  })

  test('offers kinds where a kind stands, and nowhere else', () => {
    expect(bashOffers('get', '')).toEqual(plurals(ALL_RESOURCES))
    expect(bashOffers('delete', '-n', 'shop', '')).toEqual(plurals(V3_RESOURCES))
    expect(bashOffers('get', '--output', '=', 'yaml', 'glob')).toEqual(['globalnetworkpolicies', 'globalnetworksets'])
    expect(bashOffers('get', 'tiers', '')).toEqual([])
    expect(bashOffers('get', '-n', '')).toEqual([])
  })

  test('offers files where a file stands', () => {
    expect(bashOffers('apply', '-f', 'package.j')).toEqual(['package.json'])
    expect(bashOffers('apply', '--filename', '=', 'package.j')).toEqual(['package.json'])
    expect(bashOffers('policy', 'check', 'package.j')).toEqual(['package.json'])
    expect(bashOffers('apply', 'package.j')).toEqual([])
  })

  test('offers the shells', () => {
    expect(bashOffers('completion', '')).toEqual([...SHELLS].sort())
  })
})

/** In CI all shells are there: `make test` installs them. */
function isMissing(shell: string): boolean {
  return !has(shell) && process.env['CI'] === undefined
}

describe.skipIf(isMissing('fish'))('fish, where it is installed', () => {
  test('offers commands, flags and kinds', () => {
    expect(fishOffers('')).toEqual([...new Set(ALL.map(({ name }) => name.split(' ')[0] ?? ''))].sort())
    expect(fishOffers('node ')).toEqual(['bundle', 'checksystem', 'status'])
    expect(fishOffers('get ')).toEqual(plurals(ALL_RESOURCES))
    expect(fishOffers('node checksystem --')).toEqual(['--cni', '--help', '--json', '--pins', '--vxlan-port'])
    expect(fishOffers('policy check package.j')).toEqual(['package.json'])
  })
})

describe('all shells', () => {
  test.each(ALL)('have $name with its flags', ({ name, flags }) => {
    const zsh = zshScript(ALL).split(`'${name} '*)`)[1]?.split(';;')[0]
    for (const flag of flags) {
      expect(zsh).toContain(`--${flag.name}${flag.value === undefined ? '' : '='}[`)
      expect(fishScript(ALL)).toContain(`'__netplanectl_begin ${name}' -l ${flag.name} `)
    }
  })

  test.skipIf(isMissing('zsh'))('zsh, where it is installed, parses its own', () => {
    expect(spawnSync('zsh', ['-n'], { input: zshScript(ALL), encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' })
  })
})

test.each(['completion', 'completion tcsh', 'completion bash zsh'])('"%s" is refused', (line) => {
  expect(() => readArgs(line.split(' '))).toThrow('completion: needs one of bash, zsh, fish')
})
