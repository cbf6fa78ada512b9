// SPDX-License-Identifier: Apache-2.0
/** What runs inside a kernel VM: every object under every knob, every packet case, every way to attach, with a tally
 * at the end. It changes the network, cgroups and mounts it runs in. Layer: test. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { isRealtime, unsafeKernel } from '#agent/node/facts.ts'
import { raiseMemlock } from '#native'
import { attachCases } from '../../dataplane/attach-cases.ts'
import { connectCases } from '../../dataplane/connect-cases.ts'
import { KERNEL_BTF, kernelFacts } from '../../kernel-facts.ts'
import type { KernelFacts } from '../../kernel-facts.ts'
import { OBJECTS, loadCases, loadUnfolded, runLoadCase } from '../../dataplane/load-cases.ts'
import { tunnelDeviceCases } from '../../dataplane/tunnel-device-cases.ts'
import { flowEventCases } from '../../flow-event-cases.ts'
import { netfilterCases } from '../../firewall/netfilter-cases.ts'
import { preflightCases } from '../../preflight/cases.ts'
import type { NodeCfg } from '#agent/maps/shapes.ts'
import type { Features, PacketRunner } from '../../../../testkit/packets/runner.ts'
import { HELPERS, kernelRelease, packetRunner, setUpNamespace } from '../../../../testkit/packets/runner.ts'
import { casesFor } from '../../packets/all.ts'
import { devices } from '../../../../testkit/packets/cluster.ts'

const tally = { passed: 0, failed: 0 }

function count(name: string, wrong: string | undefined): void {
  if (wrong === undefined) tally.passed++
  else {
    tally.failed++
    console.log(`FAIL ${name}: ${wrong}`)
  }
}

/** A failure of the part itself is one failed test, and false: the parts that do not need it still run. */
async function part(name: string, run: () => Promise<void> | void): Promise<boolean> {
  const started = performance.now()
  const before = { ...tally }
  let isDone = true
  try {
    await run()
  } catch (error) {
    isDone = false
    count(name, error instanceof Error ? (error.stack ?? error.message) : String(error))
  }
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  const passed = tally.passed - before.passed
  const failed = tally.failed - before.failed
  console.log(`facts: ${name}: ${passed + failed === 0 ? 'done' : `${passed} passed, ${failed} failed`} in ${seconds} s`)
  return isDone
}

function packets(runner: PacketRunner, features: Features): void {
  const cases = casesFor(features)
  for (const packetCase of cases) count(packetCase.name, runner.run(packetCase))
  const cut = cases.filter((one) => !runner.runsWhole(one)).length
  const words = `${cut} of ${cases.length} packet cases end before a step that test runs of this kernel do not take`
  console.log(`facts: ${words}`)
  if (!isBefore(6, 1)) count('every packet case runs whole, since 6.1', cut === 0 ? undefined : words)
}

async function objects(facts: KernelFacts): Promise<void> {
  for (const loadCase of loadCases(facts)) {
    const tell = (work: string): void => console.log(`facts: verifier, instructions/states, ${loadCase.name}: ${work}`)
    count(loadCase.name, await runLoadCase(loadCase, facts, tell))
  }
  // on kernels for which these are made the knobs are unknown in any case
  if (!facts.features.jiffies) return
  for (const object of OBJECTS) count(`${object} with knobs unknown, as before 5.5`, await loadUnfolded(object, facts))
}

/** From here on all is as on kernels that have no type information of their own. */
function hideKernelBtf(): void {
  if (!existsSync(KERNEL_BTF)) return
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', KERNEL_BTF])
  if (existsSync(`${KERNEL_BTF}/vmlinux`)) throw new Error('the kernel BTF could not be hidden')
}

async function everything(facts: KernelFacts): Promise<void> {
  const folder = process.env['NETPLANE_OBJECTS']
  if (folder !== undefined) await part('preflight', () => preflightCases(folder, count))
  await part('objects', () => objects(facts))
  if (process.env['NETPLANE_PARTS'] === 'objects') return
  await part('hiding the kernel BTF', hideKernelBtf)
  const hasNetwork = await part('devices', setUpNamespace)
  if (hasNetwork) await onDevices(facts)
  await part('netfilter', () => netfilterCases(count))
  const cgroup = process.env['NETPLANE_CGROUP']
  if (cgroup !== undefined) await part('connecting', () => connectCases(cgroup, facts, count))
}

function isBefore(major: number, minor: number): boolean {
  const [first = 0, second = 0] = kernelRelease().split('.').map(Number)
  return first < major || (first === major && second < minor)
}

interface Programs {
  readonly features: Features
  readonly stubs: readonly number[]
  readonly knobs?: Partial<NodeCfg>
}

/** Loading takes an emulated machine half a minute: parts that ask the same programs share them. */
async function withRunner(name: string, { features, stubs, knobs }: Programs, use: (runner: PacketRunner) => Promise<void>): Promise<void> {
  let runner: PacketRunner | undefined
  await part(name, async () => {
    runner = await packetRunner(features, stubs, knobs)
  })
  if (runner === undefined) return
  await use(runner)
  runner.close()
}

async function onDevices(facts: KernelFacts): Promise<void> {
  await part('marks', () => count('marks of test runs, since 5.6', facts.marks || isBefore(5, 6) ? undefined : 'the kernel tells none'))
  await withRunner('programs', { features: facts.features, stubs: facts.missingHelpers }, async (runner) => {
    await part('packets', () => packets(runner, facts.features))
    await part('events by perf buffers', () => flowEventCases(runner, count))
    await part('tunnel device', () => tunnelDeviceCases(runner, count))
  })
  // Where the kernel has some new helpers, the way without them is tried as well: it must do the same. Where it has
  // all, no other goes that way but this machine's own, whose packets go both.
  const has = new Set(Object.values(facts.features))
  if (has.has(true) && has.has(false)) {
    const none = { redirectPeer: false, redirectNeigh: false, coarseClock: false, jiffies: false, netnsCookies: false }
    await withRunner('programs without new helpers', { features: none, stubs: Object.values(HELPERS) }, async (runner) => {
      await part('packets without new helpers', () => packets(runner, none))
    })
  }
  if (!isBefore(5, 8))
    await withRunner(
      'programs with a ring buffer',
      { ...facts, stubs: facts.missingHelpers, knobs: { ring_buffer: 1 } },
      async (runner) => {
        await part('events by a ring buffer', () => flowEventCases(runner, count))
      },
    )
  await part('attaching', () => attachCases(devices.underlay.name, count))
}

try {
  raiseMemlock()
} catch (error) {
  // From 5.11 on memory is counted otherwise, and the limit does not matter.
  console.log(`facts: ${String(error)}`)
}
const facts = kernelFacts()
console.log(`facts: ${facts.text}`)
console.log(`facts: realtime=${String(isRealtime())}`)
// of those that are tried there is one, and its packets interrupt one another
if (isRealtime()) {
  const why = unsafeKernel()
  count('a real-time kernel is refused by name', why?.includes('real-time') === true ? undefined : (why ?? 'it is not'))
}
await everything(facts)
console.log(`${tally.passed} passed, ${tally.failed} failed`)
process.exitCode = tally.failed === 0 ? 0 : 1
