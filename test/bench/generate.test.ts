// SPDX-License-Identifier: Apache-2.0
/** The generated clusters: the same every time, and what the product reads without complaint. Layer: test. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { sha1 } from '#lib/base/hash.ts'
import { readManifest } from '#lib/manifests/read.ts'
import { listTree } from '#lib/manifests/tree.ts'
import { clusterIp, endpointAddress, replaceSlice, writeCluster } from '../../bench/generate.ts'

const folder = mkdtempSync(join(tmpdir(), 'netplane-generate-'))
afterAll(() => rmSync(folder, { recursive: true }))

function written(name: string, services: number): string {
  const directory = join(folder, name)
  writeCluster(directory, { services, endpoints: 10 })
  return directory
}

function objects(directory: string): unknown[] {
  return listTree(directory).files.flatMap((file) => {
    const read = readManifest(file, readFileSync(join(directory, file), 'utf8'))
    return read.kind === 'ok' ? read.objects.map((object) => object.value) : []
  })
}

function digest(directory: string): string {
  return sha1(
    listTree(directory)
      .files.map((file) => file + readFileSync(join(directory, file), 'utf8'))
      .join(),
  )
}

test('the same size gives the same bytes', () => {
  expect(digest(written('one', 30))).toBe(digest(written('two', 30)))
})

test('there are a service and a slice each, beside nodes and configuration', () => {
  expect(objects(written('three', 30))).toHaveLength(20 + 1 + 2 * 30)
})

test('no two services share an address, no two endpoints either', () => {
  const services = Array.from({ length: 10_000 }, (_, at) => at)
  expect(new Set(services.map(clusterIp)).size).toBe(10_000)
  const endpoints = services.flatMap((at) => Array.from({ length: 10 }, (_, endpoint) => endpointAddress(at, endpoint)))
  expect(new Set(endpoints).size).toBe(100_000)
})

test('another generation of a slice moves its first endpoint to where none was', () => {
  const directory = written('four', 3)
  replaceSlice(directory, 1, { endpoints: 10, generation: 7 })
  const text = JSON.stringify(objects(directory))
  expect(text).toContain(endpointAddress(1, 0, 7))
  expect(text).not.toContain(`"${endpointAddress(1, 0)}"`)
  expect(text).toContain(endpointAddress(1, 1))
})
