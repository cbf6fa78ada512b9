// SPDX-License-Identifier: Apache-2.0
/** `install images`: what nodes pull for an Installation. Layer: cli. */
import { packageVersion } from '#lib/base/os/package.ts'
import { imagesOf } from '#lib/render/images.ts'
import { linesText, type CommandResult } from '../command-result.ts'
import { rawSpecIn, readSpec } from './installation.ts'
import type { ImagesOrder } from './order.ts'

/** Throws ConfigError when there is no Installation, or it cannot be read. */
export function imagesCommand({ file, spec, json }: ImagesOrder): CommandResult {
  const asked = file === undefined ? readSpec('command line', spec) : readSpec(file, rawSpecIn(file))
  const images = imagesOf(asked, packageVersion())
  return { text: json ? `${JSON.stringify(images, undefined, 1)}\n` : linesText(images), warnings: '', exitCode: 0 }
}
