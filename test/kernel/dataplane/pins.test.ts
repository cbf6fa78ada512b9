// SPDX-License-Identifier: Apache-2.0
/** Folders of pins that another user has made, or may change: nothing in them is trusted. Layer: test. */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmdirSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makePinFolder, Pins, type Foreign } from '#agent/dataplane/pins.ts'

const NOBODY = 65534

let parent: string
let told: Foreign[]
let pins: Pins

beforeEach(() => {
  parent = mkdtempSync('/sys/fs/bpf/np-test-')
  told = []
  pins = new Pins(join(parent, 'netplane'), (foreign) => told.push(foreign))
})

afterEach(() => {
  rmSync(parent, { recursive: true })
})

function modes(): string[] {
  return [pins.dir, pins.maps, pins.programs, pins.links].map((path) => {
    const { uid, mode } = lstatSync(path)
    return `${uid} ${(mode & 0o777).toString(8)}`
  })
}

const OURS = Array<string>(4).fill('0 700')

test('folders of another user are created again, without what was in them', () => {
  mkdirSync(join(pins.programs, 'a'), { recursive: true })
  mkdirSync(pins.links)
  for (const path of [join(pins.programs, 'a'), pins.programs, pins.links, pins.dir]) chownSync(path, NOBODY, NOBODY)
  pins.prepare()
  expect(modes()).toEqual(OURS)
  expect(readdirSync(pins.programs)).toEqual([])
  expect(told).toEqual([{ path: pins.dir, uid: NOBODY }])
})

test("another user's folder among ours goes alone", () => {
  pins.prepare()
  mkdirSync(join(pins.maps, 'kept'))
  chownSync(pins.links, NOBODY, NOBODY)
  pins.prepare()
  expect(modes()).toEqual(OURS)
  expect(existsSync(join(pins.maps, 'kept'))).toBe(true)
  expect(told).toEqual([{ path: pins.links, uid: NOBODY }])
})

test("another user's symbolic link is not followed", () => {
  const other = join(parent, 'other')
  mkdirSync(join(other, 'maps'), { recursive: true, mode: 0o755 })
  symlinkSync(other, pins.dir)
  lchownSync(pins.dir, NOBODY, NOBODY)
  pins.prepare()
  expect(modes()).toEqual(OURS)
  expect(readdirSync(other)).toEqual(['maps'])
  expect(lstatSync(join(other, 'maps')).mode & 0o777).toBe(0o755)
  expect(told).toEqual([{ path: pins.dir, uid: NOBODY }])
})

test('folders of ours that others may write to are closed', () => {
  pins.prepare()
  for (const path of [pins.dir, pins.links]) chmodSync(path, 0o777)
  pins.prepare()
  expect(modes()).toEqual(OURS)
  expect(told).toEqual([])
})

test('a folder above ours that another user owns is refused, and left', () => {
  chownSync(parent, NOBODY, NOBODY)
  expect(() => {
    pins.prepare()
  }).toThrow(`bpffs: ${parent} is no folder of ours (user ${NOBODY})`)
  expect(told).toEqual([])
})

test.each([
  { name: 'as the kernel mounts it', mode: 0o1777, uid: 0, isGood: true },
  { name: 'closed', mode: 0o700, uid: 0, isGood: true },
  { name: 'without sticky bit', mode: 0o777, uid: 0, isGood: false },
  { name: 'of another user', mode: 0o1777, uid: NOBODY, isGood: false },
])('a mount $name', ({ mode, uid, isGood }) => {
  const mount = mkdtempSync(join(tmpdir(), 'netplane-pins-'))
  execFileSync('mount', ['-t', 'bpf', 'bpf', mount])
  try {
    chmodSync(mount, mode)
    chownSync(mount, uid, 0)
    const make = (): void => {
      makePinFolder(join(mount, 'netplane', 'maps'))
    }
    if (isGood) make()
    else expect(make).toThrow(`others may change what is in ${mount}: mount one with "mount -t bpf -o mode=700 bpf /sys/fs/bpf"`)
  } finally {
    execFileSync('umount', [mount])
    rmdirSync(mount)
  }
})
