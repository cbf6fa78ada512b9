// SPDX-License-Identifier: Apache-2.0
/** The completion for bash. Layer: cli (pure). */
import type { Flag } from '../given.ts'
import { firstOfAll, folders, isFile, lastWord, type CommandWords } from './table.ts'

/** It needs no bash-completion package. Words are split at "=" by readline, which the loops undo. */
export function bashScript(all: readonly CommandWords[]): string {
  return `# bash completion of netplanectl: source <(netplanectl completion bash)
_netplanectl() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]}
  local at=2 flags='' valued='' filed='' first='' files='' given=0 i
  COMPREPLY=()
  [[ $current == '=' ]] && current=''
  [[ $previous == '=' ]] && previous=\${COMP_WORDS[COMP_CWORD - 2]}
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '${[...firstOfAll(all), '--help', '--version'].join(' ')}' -- "$current"))
    return
  fi
  if ((COMP_CWORD == 2)); then
    case \${COMP_WORDS[1]} in
${[...folders(all)].map(([folder, some]) => `      ${folder}) COMPREPLY=($(compgen -W '${some.map(lastWord).join(' ')}' -- "$current")); return ;;`).join('\n')}
    esac
  fi
  case "\${COMP_WORDS[1]} \${COMP_WORDS[2]} " in
${all.map(commandCase).join('\n')}
    *) return ;;
  esac
  case " $filed " in *" $previous "*) COMPREPLY=($(compgen -f -- "$current")); return ;; esac
  case " $valued " in *" $previous "*) return ;; esac
  for ((i = at; i < COMP_CWORD; i++)); do
    case " $valued " in
      *" \${COMP_WORDS[i]} "*) [[ \${COMP_WORDS[i + 1]} == '=' ]] && ((i++)); ((i++)) ;;
      *) [[ \${COMP_WORDS[i]} == -* ]] || ((given++)) ;;
    esac
  done
  if [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  elif ((given == 0)) && [[ -n $first ]]; then
    COMPREPLY=($(compgen -W "$first" -- "$current"))
  elif [[ -n $files ]]; then
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -o filenames -F _netplanectl netplanectl
`
}

function commandCase(command: CommandWords): string {
  const { name, flags, first, takesFiles } = command
  const isPair = name.includes(' ')
  const valued = flags.filter(({ value }) => value !== undefined)
  const settings = [
    ...(isPair ? ['at=3'] : []),
    `flags='${spellings(flags)}'`,
    `valued='${spellings(valued)}'`,
    `filed='${spellings(valued.filter(({ value }) => isFile(value)))}'`,
    ...(first.length > 0 ? [`first='${first.join(' ')}'`] : []),
    ...(takesFiles ? ['files=yes'] : []),
  ]
  return `    '${name} '*) ${settings.join(' ')} ;;`
}

function spellings(flags: readonly Flag[]): string {
  return flags.flatMap(({ name, short }) => [`--${name}`, ...(short === undefined ? [] : [`-${short}`])]).join(' ')
}
