// SPDX-License-Identifier: Apache-2.0
/** The completion for fish. Layer: cli (pure). */
import type { Flag } from '../given.ts'
import { fishQuoted } from './quote.ts'
import { firstOfAll, folders, isFile, lastWord, type CommandWords } from './table.ts'

export function fishScript(all: readonly CommandWords[]): string {
  const pairs = folders(all)
  return `# fish completion of netplanectl: netplanectl completion fish | source
# The words before the one that is completed are these, and no others.
function __netplanectl_are
    set -l typed (commandline -opc)
    set -e typed[1]
    test "$typed" = "$argv"
end
# They begin with these.
function __netplanectl_begin
    set -l typed (commandline -opc)
    set -e typed[1]
    test (count $typed) -ge (count $argv); and test "$typed[1..$(count $argv)]" = "$argv"
end
complete -c netplanectl -f
${[
  ...firstOfAll(all).map((word) => entry('', word, all.find(({ name }) => name === word)?.about)),
  ...[...pairs].flatMap(([folder, some]) => some.map((one) => entry(folder, lastWord(one), one.about))),
  ...all.flatMap(commandEntries),
].join('\n')}
`
}

function commandEntries({ name, flags, first, takesFiles }: CommandWords): readonly string[] {
  return [
    ...(first.length > 0 ? [entry(name, first.join(' '))] : []),
    ...(takesFiles ? [`${condition('begin', name)} -F`] : []),
    ...flags.map((flag) => `${condition('begin', name)} ${flagPart(flag)}`),
  ]
}

/** After `words` and no others. */
function entry(words: string, offered: string, about?: string): string {
  return `${condition('are', words)} -a ${fishQuoted(offered)}${about === undefined ? '' : ` -d ${fishQuoted(about)}`}`
}

function condition(when: 'are' | 'begin', words: string): string {
  return `complete -c netplanectl -n ${fishQuoted(`__netplanectl_${when} ${words}`.trim())}`
}

function flagPart({ name, short, value, about }: Flag): string {
  const takes = value === undefined ? '' : isFile(value) ? ' -r -F' : ' -x'
  return `-l ${name}${short === undefined ? '' : ` -s ${short}`}${takes} -d ${fishQuoted(about)}`
}
