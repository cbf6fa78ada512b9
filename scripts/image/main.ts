// SPDX-License-Identifier: Apache-2.0
/** build/image as an image in one file, build/netplane.tar, under the name that deploy/ has. Layer: scripts. */
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packageRoot, packageVersion } from '#lib/base/os/package.ts'
import { writeArchive } from './archive.ts'

const build = join(packageRoot(), 'build')
const folder = mkdtempSync(join(tmpdir(), 'netplane-image-'))
try {
  const tags = [`docker.io/library/netplane:${packageVersion()}`]
  const image = { root: join(build, 'image'), tags, entrypoint: [], command: ['netplane-start'] }
  // make takes a file with the archive's name for a whole one
  const archive = join(build, 'netplane.tar')
  await writeArchive(`${archive}.half`, join(folder, 'work'), [image])
  renameSync(`${archive}.half`, archive)
} finally {
  rmSync(folder, { recursive: true })
}
