// SPDX-License-Identifier: Apache-2.0
/** The preflight's command in virtual machines: on kernels that lack something, and with devices and services that this
 * machine's kernel cannot make. Layer: test. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { preflightCommand } from '#agent/commands/preflight.ts'
import { isFloor } from '#agent/dataplane/programs/objects.ts'
import { probeFeatures } from '#agent/dataplane/programs/kernel-features.ts'
import { isRealtime } from '#agent/node/facts.ts'
import { parsePreflight } from '#agent/preflight/options.ts'
import { errorText } from '#lib/base/errors.ts'
import { readReport } from '#lib/preflight/report.ts'
import { isGiven } from './given-modules.ts'
import { addIpvsService } from './ipvs.ts'

type Count = (name: string, wrong: string | undefined) => void

const LOG = '/tmp/termination-log'
const UPLINK = 'pfup0'
const VLAN = 'pfup0.7'

export async function preflightCases(objects: string, count: Count): Promise<void> {
  await kernelCase(objects, count)
  if (isGiven('8021q')) await vlanCase(count)
  if (isGiven('ip_vs')) await ipvsCase(count)
}

/** "device-vlan eth0.7 …", of the report that the command leaves. */
async function codesOf(...flags: readonly string[]): Promise<readonly string[]> {
  const options = parsePreflight([`--termination-log=${LOG}`, ...flags])
  if (options === undefined) throw new Error('no options')
  const exit = await preflightCommand(options)
  if (exit !== 0) throw new Error(readFileSync(LOG, 'utf8'))
  return readReport(readFileSync(LOG, 'utf8')).findings.map(({ code, args }) => [code, ...args].join(' '))
}

async function compare(
  name: string,
  count: Count,
  { codes, wanted }: { readonly codes: () => Promise<readonly string[]>; readonly wanted: readonly RegExp[] },
): Promise<void> {
  try {
    const found = (await codes()).toSorted()
    const isSo = found.length === wanted.length && wanted.every((one, at) => one.test(found[at] ?? ''))
    count(name, isSo ? undefined : `found ${JSON.stringify(found)} instead of ${wanted.map(String).join(', ')}`)
  } catch (thrown) {
    count(name, errorText(thrown))
  }
}

/** Each kernel is told for what it is: one that interrupts packets is refused, one without functions is limited. */
async function kernelCase(objects: string, count: Count): Promise<void> {
  const wanted = [...(isFloor(probeFeatures()) ? [/^kernel-limited \d/] : []), ...(isRealtime() ? [/^kernel-realtime .*real-time/] : [])]
  await compare('preflight of the kernel', count, { codes: () => codesOf('--group=kernel', `--objects=${objects}`), wanted })
  const none = () => codesOf('--group=kernel', '--objects=/nowhere')
  await compare('preflight without the programs cannot look', count, {
    codes: () =>
      none().then(
        () => ['it could'],
        () => [],
      ),
    wanted: [],
  })
}

async function vlanCase(count: Count): Promise<void> {
  execFileSync('ip', ['link', 'add', UPLINK, 'type', 'dummy'])
  try {
    execFileSync('ip', ['link', 'set', UPLINK, 'up'])
    execFileSync('ip', ['link', 'add', 'link', UPLINK, 'name', VLAN, 'type', 'vlan', 'id', '7'])
    execFileSync('ip', ['addr', 'add', '198.51.100.1/24', 'dev', VLAN])
    execFileSync('ip', ['link', 'set', VLAN, 'up'])
    const codes = (address: string) => () => codesOf('--group=devices', `--node-addresses=${address}`)
    await compare('preflight of a tagged VLAN with the address of the node', count, {
      codes: codes('198.51.100.1'),
      wanted: [/^node-device-vlan pfup0\.7 has the node's address 198\.51\.100\.1$/],
    })
    execFileSync('ip', ['route', 'add', '203.0.113.0/24', 'dev', VLAN])
    await compare('preflight of a tagged VLAN that leads nowhere', count, { codes: codes('192.0.2.77'), wanted: [] })
    execFileSync('ip', ['route', 'add', 'default', 'dev', VLAN, 'metric', '4000'])
    await compare('preflight of a tagged VLAN that the default route takes', count, {
      codes: codes('192.0.2.77'),
      wanted: [/^device-vlan pfup0\.7 a default route leaves by it$/],
    })
  } finally {
    execFileSync('ip', ['link', 'del', UPLINK])
  }
}

async function ipvsCase(count: Count): Promise<void> {
  const codes = () => codesOf('--group=devices', '--node-addresses=192.0.2.77')
  await compare('preflight without services of IPVS', count, { codes, wanted: [] })
  addIpvsService([10, 96, 0, 1])
  execFileSync('ip', ['link', 'add', 'kube-ipvs0', 'type', 'dummy'])
  execFileSync('ip', ['addr', 'add', '10.96.0.1/32', 'dev', 'kube-ipvs0'])
  await compare('preflight where kube-proxy serves by IPVS', count, { codes, wanted: [/^ipvs-device kube-ipvs0 1$/, /^ipvs-services 1$/] })
  execFileSync('ip', ['link', 'del', 'kube-ipvs0'])
}
