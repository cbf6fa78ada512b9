// SPDX-License-Identifier: Apache-2.0
/** The images of test pods, made from this machine's programs and kept in the cache directory: no registry is asked.
 * Layer: testkit. */
import { chmodSync, copyFileSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { packageRoot } from '#lib/base/os/package.ts'
import { cached, keyOf } from '../../base/cache.ts'
import { command } from '../../base/command.ts'
import { writeArchive, type Image } from '../../../scripts/image/archive.ts'
import { PAUSE_IMAGE } from '../node-setup.ts'
import { buildGo, goSource } from './programs.ts'
import { addFile, addProgram } from './root-files.ts'
import { programsKey } from './sources.ts'

/** Changes whenever images are made in another way. */
const RECIPE = 3

/** Of upstream's tests. */
export const AGNHOST_IMAGE = 'registry.k8s.io/e2e-test-images/agnhost:2.56'
export const BUSYBOX_IMAGE = 'registry.k8s.io/e2e-test-images/busybox:1.37.0-1'
const DNS_IMAGE = 'registry.k8s.io/e2e-test-images/jessie-dnsutils:1.7'
/** Where it is used, running is all that it has to do. */
const NGINX_IMAGE = 'registry.k8s.io/e2e-test-images/nginx:1.14-4'
/** Answers connections with segments that are out of their windows. */
const WINDOW_IMAGE = 'registry.k8s.io/e2e-test-images/regression-issue-74839:1.2'
const WINDOW_SOURCE = 'k8s.io/kubernetes/test/images/regression-issue-74839'

/** Tools that tests call in pods, by where they are there. */
const TOOLS = {
  '/bin/bash': '/bin/bash',
  '/bin/busybox': '/bin/busybox',
  '/bin/sh': '/bin/dash',
  '/usr/bin/curl': '/usr/bin/curl',
  '/usr/bin/dig': '/usr/bin/dig',
  '/usr/bin/getent': '/usr/bin/getent',
  '/usr/bin/iperf': '/usr/bin/iperf',
  '/usr/local/bin/iperf': '/usr/bin/iperf',
  '/usr/bin/nc': '/bin/nc.openbsd',
  '/usr/bin/nslookup': '/usr/bin/nslookup',
  // busybox's ends with a fault when it is given a time-out
  '/usr/bin/wget': '/usr/bin/wget',
  '/sbin/ip': '/bin/ip',
  '/usr/sbin/conntrack': '/usr/sbin/conntrack',
} as const

const FOLDERS = [
  'bin',
  'etc',
  'home',
  'lib',
  'lib64',
  'proc',
  'root',
  'run',
  'sbin',
  'sys',
  'tmp',
  'uploads',
  'usr/bin',
  'usr/local/bin',
  'usr/sbin',
  'var/run',
]

const FILES = {
  'etc/passwd': 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n',
  'etc/group': 'root:x:0:\n',
  'etc/nsswitch.conf': 'hosts: files dns\n',
  // as busybox does: tests count each failure
  'etc/wgetrc': 'tries = 1\n',
} as const

/** A tar of all of them, with the programs of this folder. */
export async function testImages(programs: string): Promise<string> {
  const dir = await cached(`cluster-images-${keyOf([RECIPE, programsKey()])}`, async (half) => {
    const pause = join(half, 'pause')
    mkdirSync(pause)
    await command('gcc', ['-Os', '-Wall', '-static', '-o', join(pause, 'pause'), join(packageRoot(), 'testkit/kubernetes/build/pause.c')])
    const tools = join(half, 'tools')
    await makeTools(tools, join(programs, 'agnhost'))
    const window = join(half, 'window')
    mkdirSync(window)
    await buildGo(WINDOW_SOURCE, join(window, 'window'))
    await writeArchive(join(half, 'images.tar'), join(half, 'work'), imagesOf({ pause, tools, window }))
    for (const folder of ['pause', 'tools', 'window', 'work']) await command('rm', ['-rf', join(half, folder)])
  })
  return join(dir, 'images.tar')
}

function imagesOf({ pause, tools, window }: Readonly<Record<'pause' | 'tools' | 'window', string>>): Image[] {
  return [
    { root: pause, tags: [PAUSE_IMAGE, 'registry.k8s.io/pause:3.6'], entrypoint: ['/pause'], command: [] },
    { root: window, tags: [WINDOW_IMAGE], entrypoint: ['/window'], command: [] },
    { root: tools, tags: [AGNHOST_IMAGE, NGINX_IMAGE], entrypoint: ['/agnhost'], command: ['pause'] },
    { root: tools, tags: [BUSYBOX_IMAGE, DNS_IMAGE], entrypoint: [], command: ['sh'] },
  ]
}

/** A root file system with agnhost, busybox for what else there is to a shell, and {@link TOOLS} with their
 * libraries. */
async function makeTools(root: string, agnhost: string): Promise<void> {
  for (const folder of FOLDERS) mkdirSync(join(root, folder), { recursive: true })
  chmodSync(join(root, 'tmp'), 0o1777)
  for (const [name, text] of Object.entries(FILES)) writeFileSync(join(root, name), text)
  copyFileSync(agnhost, join(root, 'agnhost'))
  // of its servers that speak TLS
  const certificates = await goSource('k8s.io/kubernetes/test/images/agnhost/porter')
  for (const name of ['localhost.crt', 'localhost.key']) copyFileSync(join(certificates, name), join(root, name))
  const taken = new Set(Object.keys(TOOLS).map((path) => path.split('/').at(-1)))
  for (const applet of (await command('/bin/busybox', ['--list'])).split('\n'))
    if (applet !== '' && !taken.has(applet)) symlinkSync('/bin/busybox', join(root, 'bin', applet))
  for (const [path, source] of Object.entries(TOOLS)) await addProgram(root, path, source)
  for (const path of await nameLibraries()) addFile(root, path)
}

/** What the C library opens by itself to look up names. */
async function nameLibraries(): Promise<string[]> {
  const folder = dirname((/\/\S*libc\.so\.6/.exec(await command('ldd', ['/bin/bash'])) ?? [''])[0])
  return readdirSync(folder)
    .filter((name) => /^libnss_(files|dns)\.so/.test(name))
    .map((name) => join(folder, name))
}
