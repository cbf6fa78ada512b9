// SPDX-License-Identifier: Apache-2.0
/** What runtimes find of an agent while it lives, and what the next one knows of its pods. Layer: test. */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { isObject } from '#lib/base/object.ts'
import { CniNode, ips, waitingPod } from './node.ts'

let of: CniNode
beforeEach(async () => {
  of = await CniNode.make()
})

afterEach(async () => {
  await of.machine[Symbol.asyncDispose]()
})

describe('what runtimes find', () => {
  test('is there once pods can be served, with the plugin for hostPorts if there is one, and again when it was taken away', async () => {
    const path = join(of.confDir, '10-netplane.conflist')
    const field = (name: string): unknown => {
      const list: unknown = JSON.parse(readFileSync(path, 'utf8'))
      return isObject(list) ? list[name] : undefined
    }
    const types = (): unknown => {
      const plugins = field('plugins')
      return Array.isArray(plugins) && plugins.map((one: unknown) => (isObject(one) ? one['type'] : undefined))
    }
    const agent = of.agent()
    await agent.event('cni.listening')
    expect(existsSync(path)).toBe(false)
    await agent.event('dataplane.ready')
    await agent.event('cni.installed')
    expect(types()).toEqual(['netplane-cni'])
    // runtimes pass hostPorts to a plugin that declares the capability
    expect(readFileSync(path, 'utf8')).toContain('"portMappings": true')
    copyFileSync('/usr/lib/cni/portmap', join(of.binDir, 'copied'))
    renameSync(join(of.binDir, 'copied'), join(of.binDir, 'portmap'))
    await agent.event('cni.installed', 2)
    expect(types()).toEqual(['netplane-cni', 'portmap'])
    // newer runtimes call all of the list with the newest: Debian's knows no 1.1.0
    expect(field('cniVersions')).toEqual(['0.3.0', '0.3.1', '0.4.0', '1.0.0'])
    rmSync(path)
    await agent.event('cni.installed', 3)
    const shim = join(of.binDir, 'netplane-cni')
    rmSync(shim)
    await agent.until('the shim', () => existsSync(shim))
  })

  test('is served by an agent whose log is not read, which ends all the same', async () => {
    const agent = await of.readyUnread()
    expect(ips(of.add({ pod: 'a' }))).toContain('10.1.1.1/32')
    expect(of.succeeds({ pod: 'a' }, 'ping -c 1 -W 2 192.0.2.1')).toBe(true)
    for (let times = 0; times < 20; times++) expect(of.call('ADD', { pod: 'a' }).status).toBe(0)
    expect(await agent.stop()).toBe(0)
  })

  test('the socket is there again after another process removed it', async () => {
    const agent = await of.ready()
    rmSync(join(of.machine.state, 'cni.sock'))
    await agent.event('cni.listening', 2)
    expect(ips(of.add({ pod: 'a' }))).toContain('10.1.1.1/32')
  })

  test('is not there while the socket cannot be had, or the folder cannot be written: the node is not ready, and says why', async () => {
    const { machine, confDir } = of
    const socket = join(machine.state, 'cni.sock')
    const readiness = (): string => machine.sh('curl -s -w "%{http_code}" http://127.0.0.1:9099/readiness || true')
    mkdirSync(join(socket, 'taken'), { recursive: true })
    writeFileSync(confDir, 'no folder')
    const agent = machine.agent('--cni-conf-dir', confDir, '--cni-bin-dir', of.binDir, '--health-port', '9099')
    await agent.event('dataplane.ready')
    await agent.event('cni.listening.failed')
    await agent.event('cni.installed.failed')
    expect(readiness()).toMatch(/"ready":false.*"cni\.installed","ok":false.*"cni\.listening","ok":false.*503$/s)
    rmSync(socket, { recursive: true })
    rmSync(confDir)
    await agent.event('cni.listening')
    await agent.event('cni.installed')
    await expect.poll(readiness).toMatch(/"ready":true.*200$/s)
    expect(agent.events('cni.listening.failed')).toHaveLength(1)
  })

  test('goes with --cleanup, and nothing else from these folders', async () => {
    const agent = await of.ready()
    writeFileSync(join(of.binDir, 'bridge'), '')
    writeFileSync(join(of.confDir, '87-podman.conflist'), '')
    await agent.kill()
    writeFileSync(join(of.machine.state, 'flows.json'), '')
    const { status, output } = of.machine.cleanup()
    expect([status, output]).toEqual([0, expect.stringContaining(`removed file ${join(of.confDir, '10-netplane.conflist')}`)])
    expect([readdirSync(of.binDir), readdirSync(of.confDir)]).toEqual([['bridge'], ['87-podman.conflist']])
    const left = existsSync(of.machine.state) ? readdirSync(of.machine.state) : []
    expect(left.filter((name) => !name.startsWith('cni'))).toEqual([])
    expect(['cni.sock', 'cni.sock.ready'].filter((name) => left.includes(name))).toEqual([])
    expect(of.machine.cleanup()).toEqual({ status: 0, output: 'there was nothing to remove\n' })
  })

  test("is nothing where pods are another plugin's", async () => {
    await of.machine.agent().event('dataplane.ready')
    expect([existsSync(of.confDir), existsSync(join(of.machine.state, 'cni.sock'))]).toEqual([false, false])
  })
})

describe('an agent that comes after one that was killed', () => {
  test('knows its pods: they go on, are deleted, and their addresses are not given twice', async () => {
    const first = await of.ready()
    const added = of.add({ pod: 'a' })
    await first.kill()
    expect(of.call('ADD', { pod: 'b' }).output).toMatchObject({ code: 11 })
    expect(of.succeeds({ pod: 'a' }, 'ping -c 1 -W 2 192.0.2.1')).toBe(true)
    await of.ready()
    expect(of.call('CHECK', { pod: 'a' }, { prevResult: added.output }).status).toBe(0)
    expect(of.call('ADD', { pod: 'a' })).toEqual(added)
    expect(ips(of.add({ pod: 'b' }))).toContain('10.1.1.2/32')
    expect(of.call('DEL', { pod: 'a' }).status).toBe(0)
  })

  test('leaves running pods their addresses when it cannot read what is on disk of them', async () => {
    const first = await of.ready()
    for (const pod of ['a', 'b']) of.add({ pod })
    expect(of.held()).toEqual(['a-1', 'b-1'])
    of.machine.put('pods.json', [waitingPod('a', { ips: ['10.1.1.1', 'fd00:1::1'] }), waitingPod('b')])
    await first.kill()
    for (const pod of ['a', 'b']) writeFileSync(join(of.machine.state, 'cni', 'sandboxes', `${pod}-1.json`), '{')
    const next = await of.ready()
    await next.event('cni.attachment-rejected', 2)
    await next.event('dataplane.ready')
    expect(of.held()).toEqual(['a-1', 'b-1'])
    // the runtime says which sandboxes there are
    expect(of.call('GC', { pod: 'x' }, { 'cni.dev/valid-attachments': [{ containerID: 'a-1', ifname: 'eth0' }] }).status).toBe(0)
    await next.event('ipam.leaks-collected')
    expect([of.held(), of.held('fd00-1---112')]).toEqual([['a-1'], ['a-1']])
  })

  test('collects nothing before it has read which pods there are', async () => {
    const first = await of.ready()
    of.add({ pod: 'a' })
    of.machine.put('pods.json', [waitingPod('a', { ips: ['10.1.1.1', 'fd00:1::1'] })])
    await first.kill()
    writeFileSync(join(of.machine.state, 'cni', 'sandboxes', 'a-1.json'), '{')
    renameSync(of.machine.resources, `${of.machine.resources}.away`)
    const next = of.agent()
    await next.event('cni.listening')
    of.call('GC', { pod: 'x' }, { 'cni.dev/valid-attachments': [] })
    expect(of.held()).toEqual(['a-1'])
    renameSync(`${of.machine.resources}.away`, of.machine.resources)
    await next.event('dataplane.ready')
    expect(of.call('GC', { pod: 'x' }, { 'cni.dev/valid-attachments': [] }).status).toBe(0)
    expect(of.held()).toEqual(['a-1'])
  })
})
