// SPDX-License-Identifier: Apache-2.0
/** Writes the pages under docs/generated, and the manifests under deploy, that are made from the code; with --check
 * only says which are out of date. Layer: scripts. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { configPage } from '#agent/config/docs.ts'
import { MANIFESTS } from '#lib/render/manifests.ts'
import { CHART } from './pages/chart/chart.ts'
import { dropsPage } from './pages/drops.ts'
import { findingsPage } from './pages/findings.ts'
import { mapsPage } from './pages/maps.ts'
import { metricsPage } from './pages/metrics.ts'
import { PLATFORM_PAGES } from './pages/platforms.ts'
import { troubleshootingPage } from './pages/troubleshooting.ts'
import { cleanupPage, customResourcesPage, nodeManifestPage, operatorCrdsPage, operatorPage } from './pages/manifests.ts'

/** Path from the repository's root → text. */
export const pages: ReadonlyMap<string, () => string | Promise<string>> = new Map<string, () => string | Promise<string>>([
  ['deploy/operator/operator-crds.yaml', operatorCrdsPage],
  ['deploy/operator/netplane-operator.yaml', operatorPage],
  ['deploy/operator/custom-resources.yaml', () => customResourcesPage('Netplane')],
  [
    'deploy/operator/custom-resources-enterprise.yaml',
    () => customResourcesPage('NetplaneEnterprise', { 'netplane.io/enterprise-version': 'v3.21.6' }),
  ],
  ...Object.entries(CHART).map(([path, make]) => [`deploy/chart/${path}`, make] as const),
  ...MANIFESTS.map((name) => [`deploy/manifests/${name}.yaml`, () => nodeManifestPage(name)] as const),
  ['deploy/manifests/cleanup.yaml', cleanupPage],
  ['docs/generated/config.md', configPage],
  ['docs/generated/drops.md', dropsPage],
  ['docs/generated/findings.md', findingsPage],
  ['docs/generated/maps.md', mapsPage],
  ['docs/generated/metrics.md', metricsPage],
  ['docs/troubleshooting.md', troubleshootingPage],
  ...PLATFORM_PAGES,
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
