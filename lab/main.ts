#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
/** netplane-lab, the lab as a command: only reads arguments and prints. Layer: lab. */
import { errorText } from '#lib/base/errors.ts'
import { commands, USAGE } from './commands.ts'

const [name = 'help', ...args] = process.argv.slice(2)
const command = Object.hasOwn(commands, name) ? commands[name] : undefined

if (command === undefined) {
  const asked = ['help', '--help', '-h'].includes(name)
  const stream = asked ? process.stdout : process.stderr
  stream.write(asked ? USAGE : `netplane-lab: no command ${JSON.stringify(name)}\n\n${USAGE}`)
  process.exitCode = asked ? 0 : 2
} else if (process.getuid?.() !== 0) {
  process.stderr.write('netplane-lab needs root\n')
  process.exitCode = 1
} else {
  try {
    process.exitCode = await command(args)
  } catch (thrown) {
    process.stderr.write(`netplane-lab ${name}: ${errorText(thrown)}\n`)
    process.exitCode = 1
  }
}
