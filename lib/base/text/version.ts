// SPDX-License-Identifier: Apache-2.0
/** Versions as programs, images and servers say them. Layer: lib/base. */

export type Version = readonly [major: number, minor: number, patch: number]

/** Of "v1.34.1-eks-1" or "3.27": what stands behind the numbers is of a build. Undefined: it is no version. */
export function parseVersion(text: string): Version | undefined {
  const [, major, minor, patch = '0'] = /^v?(\d+)\.(\d+)(?:\.(\d+))?(?![\d.])/.exec(text) ?? []
  return major === undefined || minor === undefined ? undefined : [Number(major), Number(minor), Number(patch)]
}

/** "3.27.0" */
export function versionText(version: Version): string {
  return version.join('.')
}

export function compareVersions(a: Version, b: Version): number {
  return a.map((part, at) => part - (b[at] ?? 0)).find((difference) => difference !== 0) ?? 0
}
