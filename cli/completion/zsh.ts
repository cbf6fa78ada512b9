// SPDX-License-Identifier: Apache-2.0
/** The completion for zsh. Layer: cli (pure). */
import type { Flag } from '../given.ts'
import { shellQuoted } from './quote.ts'
import { firstOfAll, folders, isFile, lastWord, type CommandWords } from './table.ts'

/** To be sourced, or as a file `_netplanectl` of the function path. */
export function zshScript(all: readonly CommandWords[]): string {
  return `#compdef netplanectl
# zsh completion of netplanectl: source <(netplanectl completion zsh)
_netplanectl() {
  local -a found
  if ((CURRENT == 2)); then
    found=(${described(all)})
    _describe command found
    return
  fi
  if ((CURRENT == 3)); then
    case $words[2] in
${[...folders(all)].map(([folder, some]) => `      ${folder}) found=(${some.map((one) => item(lastWord(one), one.about)).join(' ')}); _describe command found; return ;;`).join('\n')}
    esac
  fi
  case "$words[2] $words[3] " in
${all.map(commandCase).join('\n')}
  esac
}
if [[ \${funcstack[1]} == _netplanectl ]]; then _netplanectl "$@"; else compdef _netplanectl netplanectl; fi
`
}

function described(all: readonly CommandWords[]): string {
  const pairs = folders(all)
  return firstOfAll(all)
    .map((word) => item(word, all.find(({ name }) => name === word)?.about ?? (pairs.get(word) ?? []).map(lastWord).join(', ')))
    .join(' ')
}

function item(word: string, about: string): string {
  return shellQuoted(`${word}:${about}`)
}

function commandCase({ name, flags, first, takesFiles }: CommandWords): string {
  const count = name.split(' ').length
  const words = [
    ...(first.length > 0 ? [shellQuoted(`1:first:(${first.join(' ')})`)] : []),
    ...(takesFiles ? [shellQuoted('*:FILE:_files')] : []),
  ]
  const lines = [...flags.flatMap(flagSpecs), ...words].map((line) => `      ${line}`).join(' \\\n')
  return `    ${shellQuoted(`${name} `)}*) shift ${count} words; ((CURRENT -= ${count})); _arguments -s \\\n${lines} ;;`
}

function flagSpecs({ name, short, value, multiple, about }: Flag): readonly string[] {
  const text = `[${about.replace(/[[\]\\]/g, '\\$&')}]`
  const takes = value === undefined ? '' : `:${value}:${isFile(value) ? '_files' : ''}`
  const often = multiple === true ? '*' : ''
  return [
    shellQuoted(`${often}--${name}${value === undefined ? '' : '='}${text}${takes}`),
    ...(short === undefined ? [] : [shellQuoted(`${often}-${short}${text}${takes}`)]),
  ]
}
