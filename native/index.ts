// SPDX-License-Identifier: Apache-2.0
/** Finds and loads the built addon, explains why it cannot, and gives it its types. Layer: native. */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type * as Binding from './binding.d.ts'

const ADDON = join('build', 'Release', 'netplane_native.node')

/** This file is native/index.ts, dist/native/index.js or part of a bundle: the package's root is at most three
 * folders up. */
function findAddon(): string {
  const start = dirname(fileURLToPath(import.meta.url))
  for (const up of ['.', '..', '../..', '../../..']) {
    const path = join(start, up, ADDON)
    if (existsSync(path)) return path
  }
  throw new Error(`the native addon ${ADDON} was not found above ${start}: run "make" to build it, or take the program of the image`)
}

/** The dynamic loader has only words for its reasons. */
function explain(path: string, reason: string): string {
  const library = /(lib(?:bpf|elf|z)\.so\.\d+): cannot open/.exec(reason)?.[1]
  const packages = new Map([
    ['libbpf.so.1', 'libbpf1'],
    ['libelf.so.1', 'libelf1'],
    ['libz.so.1', 'zlib1g'],
  ])
  if (library !== undefined) return `${library} is missing: install the Debian package ${packages.get(library) ?? library}`
  if (reason.includes('undefined symbol')) return `a library is older than the one it was built with (${reason}): run "make" on this system`
  // also what the loader says of a file for another processor, which findAddon has just seen to exist
  if (reason.includes('ELF') || reason.includes('cannot open shared object file'))
    return `it was built for another machine than this ${process.arch}: run "make"`
  if (reason.includes('version')) return `it was built for another version of Node.js or libc than this (${reason}): run "make"`
  return `${reason} (file ${path})`
}

function load(): typeof Binding {
  const path = findAddon()
  try {
    return createRequire(import.meta.url)(path) as typeof Binding
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`the native addon cannot be loaded: ${explain(path, reason)}`, { cause })
  }
}

const addon = load()

export const BpfObject = addon.BpfObject
export const BpfMap = addon.BpfMap
export const BpfProgram = addon.BpfProgram
export const BpfLink = addon.BpfLink
export const EventReader = addon.EventReader
export const NetlinkSocket = addon.NetlinkSocket
export const tcCreateHook = addon.tcCreateHook
export const tcAttach = addon.tcAttach
export const tcQuery = addon.tcQuery
export const tcDetach = addon.tcDetach
export const tcDestroyHook = addon.tcDestroyHook
export const tcxQuery = addon.tcxQuery
export const cgroupQuery = addon.cgroupQuery
export const cgroupAttach = addon.cgroupAttach
export const cgroupDetach = addon.cgroupDetach
export const xdpAttach = addon.xdpAttach
export const xdpQuery = addon.xdpQuery
export const possibleCpus = addon.possibleCpus
export const ifindexOf = addon.ifindexOf
export const monotonicNs = addon.monotonicNs
export const netnsCookie = addon.netnsCookie
export const writeInNetns = addon.writeInNetns
export const makeNetns = addon.makeNetns
export const socketInNetns = addon.socketInNetns
export const ticksPerSecond = addon.ticksPerSecond
export const lockFile = addon.lockFile
export const abstractOwner = addon.abstractOwner
export const btfById = addon.btfById
export const libbpfVersion = addon.libbpfVersion
export const raiseMemlock = addon.raiseMemlock
export const openUdpTap = addon.openUdpTap
export const openProbeTap = addon.openProbeTap
export const openRawUdp = addon.openRawUdp
export const sendRawUdp = addon.sendRawUdp
export const setBatchCalls = addon.setBatchCalls

export type BpfObject = Binding.BpfObject
export type BpfMap = Binding.BpfMap
export type BpfProgram = Binding.BpfProgram
export type BpfLink = Binding.BpfLink
export type EventReader = Binding.EventReader
export type NetlinkSocket = Binding.NetlinkSocket
export type {
  CgroupHook,
  Direction,
  LinkInfo,
  MapInfo,
  MapSpec,
  NativeError,
  ProgramInfo,
  ProgramSpec,
  TcFilter,
  TestRunOptions,
} from './binding.d.ts'
