// SPDX-License-Identifier: Apache-2.0
/** The commands of netplane-lab. Each takes its arguments and resolves with the exit code. Layer: lab. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { systemClock } from '#lib/base/clock.ts'
import { ConfigError } from '#lib/base/errors.ts'
import { count, list, readArgs, words } from './args.ts'
import { knownLabs } from './network/down.ts'
import { Lab } from './lab.ts'
import { LabError } from './errors.ts'
import { INSPECTOR_PORT, relayInspector } from './processes/inspector.ts'
import { leftoverText, statusText } from './print.ts'

export const USAGE = `netplane-lab: a small cluster of network namespaces on this machine (root only)

  up --resources DIR     build it from Node and Pod manifests, or repair and extend the one there is
     --nodes A,B         only these nodes and their pods
     --client IP,IP      addresses of the client (default: free ones beside the nodes)
     --mtu N             of pods' interfaces (default 1500)
     --underlay-mtu N    between nodes (default 1500)
     --no-agents         network only
     --no-servers        no echo servers on the ports that pods declare
     --no-wait           do not wait until agents are ready
     --plain             no agents; the kernel itself routes between all pods
     --agent-command C   instead of the built netplane-agent: words, or a JSON list
  exec PLACE -- CMD...   run CMD there; PLACE: POD, NAMESPACE/POD, node/NAME, client, far (behind a router), fabric
  start-agent NODE       start-agent and stop-agent (SIGTERM) wait; kill-agent is SIGKILL
  stop-agent NODE
  kill-agent NODE
  status                 nodes, pods, addresses, agents; exit code 0 when all is well
  logs NODE [-f]         what the node's agent has printed
  inspect NODE           the inspector of its agent, at this machine's 127.0.0.1:9229 until it is interrupted
     --port N            another port
  list                   names of all labs
  down                   take it away; names what it had to leave

  every command:  --name LAB (default "lab")   --json where there is something to print
`

export const commands: Readonly<Record<string, (args: readonly string[]) => Promise<number>>> = {
  up,
  exec,
  status,
  logs,
  inspect,
  down,
  list: listLabs,
  'start-agent': (args) =>
    onAgent(args, async (lab, node) => {
      await lab.agents.start(node)
      await lab.agents.waitReady(node)
    }),
  'stop-agent': (args) => onAgent(args, (lab, node) => requireStopped(lab, node, 'SIGTERM')),
  'kill-agent': (args) => onAgent(args, (lab, node) => requireStopped(lab, node, 'SIGKILL')),
}

async function up(args: readonly string[]): Promise<number> {
  const { values } = readArgs(args, {
    resources: 'text',
    nodes: 'text',
    client: 'text',
    mtu: 'text',
    'underlay-mtu': 'text',
    'agent-command': 'text',
    'no-agents': 'flag',
    'no-servers': 'flag',
    'no-wait': 'flag',
    plain: 'flag',
  })
  const start = systemClock.now()
  const lab = await Lab.build({
    name: values.text('name'),
    resources: values.text('resources'),
    nodes: list(values.text('nodes')),
    client: list(values.text('client')),
    mtu: count('--mtu', values.text('mtu')),
    underlayMtu: count('--underlay-mtu', values.text('underlay-mtu')),
    agentCommand: words(values.text('agent-command')),
    agents: values.flag('no-agents') ? false : undefined,
    servers: values.flag('no-servers') ? false : undefined,
    plain: values.flag('plain') ? true : undefined,
    wait: !values.flag('no-wait'),
    progress: (text) => process.stderr.write(`${text}\n`),
  })
  process.stderr.write(`up after ${((systemClock.now() - start) / 1000).toFixed(1)} s\n`)
  return print(values.flag('json'), await lab.status(), statusText)
}

async function exec(args: readonly string[]): Promise<number> {
  const { values, positionals, command } = readArgs(args, {})
  const [place] = positionals
  if (place === undefined || command.length === 0) throw new ConfigError('exec', 'takes a place and, after --, a command')
  const lab = Lab.open(values.text('name'))
  const [program = '', ...rest] = lab.commandIn(place, command, process.cwd())
  const child = spawn(program, rest, { stdio: 'inherit' })
  // the terminal has sent these to the child as well; the others are for it alone
  process.on('SIGINT', () => undefined)
  for (const name of ['SIGTERM', 'SIGHUP'] as const) process.on(name, () => child.kill(name))
  return await new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code, signal) => {
      resolve(code ?? 128 + signalNumber(signal))
    })
  })
}

async function status(args: readonly string[]): Promise<number> {
  const { values } = readArgs(args, {})
  const state = await Lab.open(values.text('name')).status()
  print(values.flag('json'), state, statusText)
  return state.ok ? 0 : 1
}

async function logs(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArgs(args, { follow: 'flag' })
  const lab = Lab.open(values.text('name'))
  const node = nodeIn(positionals, lab)
  if (!values.flag('follow')) {
    process.stdout.write(lab.log(node))
    return 0
  }
  const child = spawn('tail', ['-n', '+1', '-F', lab.logFile(node)], { stdio: 'inherit' })
  return await new Promise((resolve) => {
    child.on('close', (code) => {
      resolve(code ?? 0)
    })
  })
}

async function inspect(args: readonly string[]): Promise<number> {
  const { values, positionals } = readArgs(args, { port: 'text' })
  const lab = Lab.open(values.text('name'))
  const node = nodeIn(positionals, lab)
  const port = count('--port', values.text('port')) ?? INSPECTOR_PORT
  const ended = new AbortController()
  await relayInspector(lab, node, { port, signal: ended.signal })
  process.stdout.write(`inspector of the agent of node ${node}: 127.0.0.1:${port}\n`)
  await Promise.race(['SIGINT', 'SIGTERM', 'SIGHUP'].map((name) => once(process, name)))
  ended.abort()
  return 0
}

async function down(args: readonly string[]): Promise<number> {
  const { values } = readArgs(args, {})
  const leftovers = await Lab.remove(values.text('name'))
  print(values.flag('json'), { leftovers }, () => leftovers.map(leftoverText).join('\n'))
  return leftovers.length === 0 ? 0 : 1
}

function listLabs(args: readonly string[]): Promise<number> {
  const { values } = readArgs(args, {})
  return Promise.resolve(print(values.flag('json'), { labs: knownLabs() }, ({ labs }) => labs.join('\n')))
}

async function onAgent(args: readonly string[], act: (lab: Lab, node: string) => Promise<void>): Promise<number> {
  const { values, positionals } = readArgs(args, {})
  const lab = Lab.open(values.text('name'))
  const node = nodeIn(positionals, lab)
  await act(lab, node)
  return print(
    values.flag('json'),
    { node, pid: lab.agents.pid(node) },
    ({ pid }) => `agent of node ${node}: ${pid === undefined ? 'gone' : `pid ${pid}, ready`}`,
  )
}

/** The first of them; throws ConfigError when there is none. */
function nodeIn([node]: readonly string[], lab: Lab): string {
  if (node === undefined) throw new ConfigError('NODE', `say which: ${lab.topology.nodes.map((candidate) => candidate.name).join(', ')}`)
  return node
}

async function requireStopped(lab: Lab, node: string, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  if (!(await lab.agents.stop(node, signal))) throw new LabError(`agent of node ${node}`, 'does not run')
}

/** Always 0, for a command's last line. */
function print<T>(json: boolean, value: T, text: (value: T) => string): number {
  const out = json ? JSON.stringify(value, undefined, 2) : text(value)
  if (out !== '') process.stdout.write(`${out}\n`)
  return 0
}

/** As shells have it; of the signals that end a command by hand. */
function signalNumber(signal: NodeJS.Signals | null): number {
  return { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGABRT: 6, SIGKILL: 9, SIGSEGV: 11, SIGPIPE: 13, SIGTERM: 15 }[String(signal)] ?? 0
}
