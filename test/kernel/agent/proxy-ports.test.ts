// SPDX-License-Identifier: Apache-2.0
/** The ports that a kube-proxy is to take answer until it has them, by the real kernel's redirect. Layer: test. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { AgentProcess, ScratchNode } from '../../../testkit/base/scratch-node.ts'
import { makeNode } from './node.ts'

const PORT = 10256
const PLACES = ['127.0.0.1', '192.0.2.1', '[::1]']
const OTHER = `require('node:http').createServer((_, to) => to.end('the other')).listen(${PORT}, () => console.log('listens'))`

let machine: ScratchNode

beforeEach(async () => {
  machine = await makeNode()
})

afterEach(async () => {
  await machine[Symbol.asyncDispose]()
})

/** A pod of kube-proxy is bound to the node. */
function putProxy(): void {
  const metadata = { name: 'kube-proxy-1', namespace: 'kube-system', labels: { 'k8s-app': 'kube-proxy' } }
  const spec = { nodeName: 'n1', hostNetwork: true, containers: [{ name: 'c', image: 'i' }] }
  machine.put('proxy.json', [{ apiVersion: 'v1', kind: 'Pod', metadata, spec, status: { phase: 'Pending' } }])
}

/** What asking each address says: a service is healthy, or it is another's. */
function answers(): string[] {
  return PLACES.map((place) => machine.sh(`curl -gs --max-time 2 http://${place}:${PORT}/livez || echo nothing`).trim())
}

function tables(): string {
  return machine.sh('nft list tables')
}

function listens(): boolean {
  return machine.sh(`ss -Hltn 'sport = :${PORT}'`).trim() !== ''
}

/** An agent whose ports are redirected and free. */
async function leaving(): Promise<AgentProcess> {
  const agent = machine.agent()
  await agent.event('proxy-health.listening')
  putProxy()
  await agent.event('ports.redirected')
  await agent.until('free port', () => !listens())
  return agent
}

test('every address answers until another process listens, and from then on it does', async () => {
  const agent = await leaving()
  for (const answer of answers()) expect(answer).toContain('"healthy"')
  const other = machine.spawn([process.execPath, '-e', OTHER])
  await new Promise((resolve) => other.stdout?.once('data', resolve))
  await agent.event('ports.redirected', 2)
  expect(answers()).toEqual(PLACES.map(() => 'the other'))
  await agent.until('no table', () => !tables().includes('netplane-ports'))
  other.kill('SIGKILL')
})

test('without a kube-proxy the agent has its port again', async () => {
  const agent = await leaving()
  machine.drop('proxy.json')
  await agent.event('proxy-health.listening', 2)
  await agent.until('no table', () => !tables().includes('netplane-ports'))
  for (const answer of answers()) expect(answer).toContain('"healthy"')
})

test('an agent that stops takes the redirect away; one that was killed has it taken away by the next', async () => {
  const first = await leaving()
  await first.stop()
  expect(tables()).not.toContain('netplane-ports')
  machine.drop('proxy.json')
  const second = await leaving()
  await second.kill()
  expect(tables()).toContain('netplane-ports')
  const third = machine.agent()
  await third.until('no table', () => !tables().includes('netplane-ports'))
})

test('--cleanup takes away what a killed agent has redirected', async () => {
  const agent = await leaving()
  await agent.kill()
  expect(machine.cleanup().output).toContain('removed nftables netplane-ports\n')
  expect(tables()).not.toContain('netplane-ports')
})
