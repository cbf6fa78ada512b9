// SPDX-License-Identifier: Apache-2.0
/** Packages are chosen for the Node that will run them, whichever runs npm. Layer: test. */
import { execFileSync } from 'node:child_process'
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

test('npm takes itself for the Node of package.json under any other', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'netplane-npm-'))
  writeFileSync(join(folder.path, 'npm'), `#!${process.execPath}\nconsole.log(process.version, process.argv.slice(2).join(' '))\n`, {
    mode: 0o755,
  })
  const old = `--import=data:text/javascript,Object.defineProperty(process,'version',{value:'v18.0.0',configurable:true})`
  const env = { PATH: `${folder.path}:${process.env['PATH']}`, NODE_OPTIONS: old }
  const said = execFileSync('scripts/npm-ci', ['--omit=dev'], { encoding: 'utf8', env })
  expect(said).toBe(`${process.version} ci --ignore-scripts --no-audit --no-fund --loglevel=error --omit=dev\n`)
})
