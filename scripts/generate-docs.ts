// SPDX-License-Identifier: Apache-2.0
/** Writes the pages under docs/generated, and the manifests under deploy, that are made from the code; with --check
 * only says which are out of date. Layer: scripts. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { configPage } from '#agent/config/docs.ts'
import { dropsPage } from './pages/drops.ts'
import { mapsPage } from './pages/maps.ts'
import { metricsPage } from './pages/metrics.ts'
import { customResourcesPage, nodeManifestPage, operatorCrdsPage, operatorPage } from './pages/manifests.ts'

/** Path from the repository's root → text. */
export const pages: ReadonlyMap<string, () => string | Promise<string>> = new Map<string, () => string | Promise<string>>([
  ['deploy/operator/operator-crds.yaml', operatorCrdsPage],
  ['deploy/operator/netplane-operator.yaml', operatorPage],
  ['deploy/operator/custom-resources.yaml', () => customResourcesPage('Netplane')],
  [
    'deploy/operator/custom-resources-enterprise.yaml',
    () => customResourcesPage('NetplaneEnterprise', { 'netplane.io/enterprise-version': 'v3.21.6' }),
  ],
  ['deploy/manifests/netplane.yaml', () => nodeManifestPage('Netplane')],
  ['deploy/manifests/netplane-chained.yaml', () => nodeManifestPage('Chained')],
  ['docs/generated/config.md', configPage],
  ['docs/generated/drops.md', dropsPage],
  ['docs/generated/maps.md', mapsPage],
  ['docs/generated/metrics.md', metricsPage],
])

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

async function main(check: boolean): Promise<void> {
  for (const [path, make] of pages) {
    const text = await make()
    if (textOf(path) === text) continue
    process.stdout.write(`${check ? 'out of date' : 'written'}: ${path}\n`)
    if (check) {
      process.exitCode = 1
      continue
    }
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
  }
}

if (import.meta.main) await main(process.argv.includes('--check'))
