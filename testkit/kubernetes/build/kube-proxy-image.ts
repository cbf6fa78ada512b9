// SPDX-License-Identifier: Apache-2.0
/** The image of kube-proxy, made from the program that is built here and this machine's tools, as upstream's has them.
 * Layer: testkit. */
import { copyFileSync, globSync, mkdirSync, realpathSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { writeArchive } from '../../../scripts/image/archive.ts'
import { cached, keyOf } from '../../base/cache.ts'
import { command } from '../../base/command.ts'
import { addProgram } from './root-files.ts'
import { kubernetesVersion, programsKey } from './sources.ts'

/** Changes whenever the image is made in another way. */
const RECIPE = 2

export const KUBE_PROXY_IMAGE = `registry.k8s.io/kube-proxy:v${kubernetesVersion()}`

/** Where kubeadm's DaemonSet starts it. */
const PROGRAM = 'usr/local/bin/kube-proxy'
const TOOLS = ['/usr/sbin/nft', '/usr/sbin/conntrack'] as const
/** One program that answers to these names; it loads its matches and targets by itself. */
const IPTABLES = '/usr/sbin/xtables-nft-multi'
const IPTABLES_NAMES = ['', '6'].flatMap((family) => ['', '-save', '-restore'].map((verb) => `ip${family}tables${verb}`))

/** A tar of it, with the program of this folder. */
export async function kubeProxyImage(programs: string): Promise<string> {
  const dir = await cached(`kube-proxy-image-${keyOf([RECIPE, programsKey()])}`, async (half) => {
    const root = join(half, 'root')
    await makeRoot(root, programs)
    const image = { root, tags: [KUBE_PROXY_IMAGE], entrypoint: [], command: [`/${PROGRAM}`] }
    await writeArchive(join(half, 'image.tar'), join(half, 'work'), [image])
    for (const folder of ['root', 'work']) await command('rm', ['-rf', join(half, folder)])
  })
  return join(dir, 'image.tar')
}

async function makeRoot(root: string, programs: string): Promise<void> {
  for (const folder of ['tmp', 'run', 'proc', 'sys', 'etc', 'lib/modules', dirname(PROGRAM)])
    mkdirSync(join(root, folder), { recursive: true })
  // one binary of all programs, which goes by the name that it is called by
  copyFileSync(realpathSync(join(programs, 'kube-proxy')), join(root, PROGRAM))
  for (const tool of [...TOOLS, IPTABLES]) await addProgram(root, tool, tool)
  for (const name of IPTABLES_NAMES) symlinkSync(IPTABLES, join(root, 'usr/sbin', name))
  for (const path of globSync('/usr/lib/*/xtables/*.so')) await addProgram(root, path, path)
}
