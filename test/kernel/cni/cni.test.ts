// SPDX-License-Identifier: Apache-2.0
/** Pods by CNI: the real shim, a real agent, real namespaces. Layer: test. */
import { copyFileSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { workloadInterface } from '#lib/model/pod.ts'
import { onlyFrom } from '../agent/manifests.ts'
import { links } from '../agent/node.ts'
import { withinBestOfThree } from '../../support/steady/best-of.ts'
import { CniNode, ips, refusalOf, waitingPod, type Outcome } from './node.ts'

let of: CniNode
beforeEach(async () => {
  of = await CniNode.make()
})

afterEach(async () => {
  await of.machine[Symbol.asyncDispose]()
})

function host(name: string): string {
  return workloadInterface({ namespace: 'default', name })
}

describe('ADD', () => {
  test('pods reach each other and the node, in both families', async () => {
    await of.ready()
    const [a, b] = [of.add({ pod: 'a' }), of.add({ pod: 'b' })]
    expect([ips(a), ips(b)]).toEqual([
      ['10.1.1.1/32', 'fd00:1::1/128'],
      ['10.1.1.2/32', 'fd00:1::2/128'],
    ])
    expect(a.output['interfaces']).toMatchObject([{ name: host('a') }, { name: 'eth0', sandbox: of.netns({ pod: 'a' }) }])
    // at once: nothing has to be found out first
    for (const target of ['10.1.1.2', 'fd00:1::2']) expect(of.machine.sh(`ping -c 1 -W 0.5 ${target} || true`)).toContain('1 received')
    for (const target of ['10.1.1.2', 'fd00:1::2', '192.0.2.1', 'fd00::1'])
      expect(of.succeeds({ pod: 'a' }, `ping -c 2 -i 0.2 -W 2 ${target}`)).toBe(true)
    // without pools nodes beyond a router are reached in the tunnel, by IPv6 as well
    expect(of.inPod({ pod: 'a' }, 'ip link show eth0')).toContain('mtu 1430')
  })

  test('the same sandbox again has the same answer, and keeps its veth', async () => {
    await of.ready()
    const first = of.add({ pod: 'a' })
    const index = of.machine.sh(`ip -o link show ${host('a')}`)
    expect(of.call('ADD', { pod: 'a' })).toEqual(first)
    expect(of.machine.sh(`ip -o link show ${host('a')}`)).toBe(index)
  })

  test('a veth that is created again is up with its programs', async () => {
    await of.ready()
    of.add({ pod: 'a' })
    for (let times = 0; times < 5; times++) {
      of.inPod({ pod: 'a' }, 'ip link set eth0 down')
      expect(of.call('ADD', { pod: 'a' }).status).toBe(0)
      const found = links(of.machine)
      const index = /^\d+/.exec(of.machine.sh(`ip -o link show ${host('a')}`))?.[0]
      // link, program, device
      const devices = ['ingress', 'egress'].map((hook) => found[`${host('a')}:${hook}`]?.split(' ')[2])
      expect(devices).toEqual([index, index])
    }
  })

  test('another sandbox of the pod takes the place of the one before, whose DEL then changes nothing', async () => {
    await of.ready()
    const [old, now] = [
      { pod: 'a', id: 'a-old' },
      { pod: 'a', id: 'a-new' },
    ]
    expect(ips(of.add(old))).toContain('10.1.1.1/32')
    expect(ips(of.add(now))).toContain('10.1.1.2/32')
    expect(of.call('DEL', old)).toEqual({ status: 0, output: {} })
    expect(of.saved()).toEqual(['a-new.json'])
    expect(of.succeeds(now, 'ping -c 1 -W 2 192.0.2.1')).toBe(true)
  })

  test('a waiting call ends at once when another sandbox of its pod is asked for, lest it replace that one', async () => {
    await of.ready()
    // behind the time of the second call itself
    await withinBestOfThree(2000, async (tries) => {
      const [early, late] = [`early-${tries}`, `late-${tries}`]
      const answer = of.beginAdd({ pod: 'ghost', id: early })
      // the listener, and the client that waits
      await expect.poll(() => of.machine.sh('grep -c cni.sock /proc/net/unix').trim()).toBe('2')
      expect(refusalOf(of.add({ pod: 'ghost', id: late }, { timeoutSeconds: 1 }))).toContain('no source has Pod default/ghost')
      const since = performance.now()
      const msg = `another sandbox of the pod is asked for: ${late}`
      await expect.poll(answer).toMatchObject({ status: 1, output: { code: 11, msg } })
      return performance.now() - since
    })
  })

  test('a pod that no source has is refused with that reason', async () => {
    await of.ready()
    expect(of.add({ pod: 'ghost' }, { timeoutSeconds: 1 })).toMatchObject({
      status: 1,
      output: { code: 11, msg: 'not ready in time: no source has Pod default/ghost on node n1' },
    })
    expect(of.saved()).toEqual([])
  })

  test('an agent that is stopped answers every waiting call, and ends at once', async () => {
    await withinBestOfThree(2000, async (tries) => {
      const agent = await of.ready()
      const answer = of.beginAdd({ pod: 'ghost', id: `ghost-${tries}` })
      // the listener, and the client that waits; a later call is handled after it
      await expect.poll(() => of.machine.sh('grep -c cni.sock /proc/net/unix').trim()).toBe('2')
      expect(of.add({ pod: 'a', id: `a-${tries}` }).status).toBe(0)
      const began = performance.now()
      expect(await agent.stop()).toBe(0)
      const took = performance.now() - began
      await expect.poll(answer).toMatchObject({ status: 1, output: { code: 11, msg: 'the agent of this node stops' } })
      expect(of.saved()).toEqual([`a-${tries}.json`])
      return took
    })
  })

  test('a pod of the same name with another uid is not the pod that is meant', async () => {
    of.machine.put('pods.json', [waitingPod('a', { uid: 'u1' })])
    await of.ready()
    expect(refusalOf(of.add({ pod: 'a', id: 'early', uid: 'u2' }, { timeoutSeconds: 1 }))).toBe(
      '11: not ready in time: no source has Pod default/a on node n1 with the uid u2, which the runtime says, but with u1',
    )
    const answer = of.beginAdd({ pod: 'a', id: 'waits', uid: 'u2' })
    // a call that waits holds up no other
    expect(ips(of.add({ pod: 'a', id: 'old', uid: 'u1' }, { timeoutSeconds: 5 }))).toContain('10.1.1.1/32')
    expect(answer()).toBeUndefined()
    of.machine.put('pods.json', [waitingPod('a', { uid: 'u2' })])
    await expect.poll(answer).toMatchObject({ status: 0 })
    expect(of.saved()).toEqual(['waits.json'])
  })

  test('a pod has its address of the pool that it names, else of the one that its namespace names, else of one that is for it', async () => {
    const pool = (name: string, cidr: string, spec: object = {}): object => {
      return { apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata: { name }, spec: { cidr, ...spec } }
    }
    const named = (name: string): object => ({ annotations: { 'cni.netplane.io/ipv4pools': `["${name}"]` } })
    const namespace = (metadata: object): object => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default', ...metadata } })
    const pools = [
      pool('fast', '10.2.0.0/24', { assignmentMode: 'Manual' }),
      pool('slow', '10.3.0.0/24', { assignmentMode: 'Manual' }),
      pool('blue', '10.4.0.0/24', { namespaceSelector: "team == 'blue'" }),
    ]
    of.machine.put('pools.json', [...pools, namespace(named('slow'))])
    of.machine.put('pods.json', [waitingPod('a', named('fast')), waitingPod('b'), waitingPod('c')])
    await of.ready()
    const [own, ofNamespace] = [of.add({ pod: 'a' }), of.add({ pod: 'b' })]
    of.machine.put('pools.json', [...pools, namespace({ labels: { team: 'blue' } })])
    const chosen = async (): Promise<string> => {
      of.call('DEL', { pod: 'c' })
      return await Promise.resolve(ips(of.call('ADD', { pod: 'c' }))[0] ?? '')
    }
    of.makeNetns({ pod: 'c' })
    await expect.poll(chosen).toMatch(/^10\.4\.0\./)
    expect([own, ofNamespace].map((outcome) => ips(outcome)[0])).toEqual([
      expect.stringMatching(/^10\.2\.0\./),
      expect.stringMatching(/^10\.3\.0\./),
    ])
  })

  test('a policy is in force from the first packet on [once]', async () => {
    const pool = { apiVersion: 'netplane.io/v3', kind: 'IPPool', metadata: { name: 'p' }, spec: { cidr: '10.2.0.0/24' } }
    const fixed = (name: string, address: string): unknown =>
      waitingPod(name, { labels: { app: name }, annotations: { 'cni.netplane.io/ipAddrs': `["${address}"]` } })
    of.machine.put('pods.json', [pool, waitingPod('a'), fixed('open', '10.2.0.5'), fixed('closed', '10.2.0.6')])
    of.machine.put('policy.json', [onlyFrom('deny', { app: 'closed' }, { app: 'nobody' })])
    await of.ready()
    of.add({ pod: 'a' })
    const datagrams = (name: string): number => Number(of.inPod({ pod: name }, 'grep ^Udp: /proc/self/net/snmp | tail -1').split(' ')[2])
    for (const [name, address] of [
      ['open', '10.2.0.5'],
      ['closed', '10.2.0.6'],
    ] as const) {
      const sender = `nsenter --net=${of.netns({ pod: 'a' })} bash -c 'for i in $(seq 400); do echo x > /dev/udp/${address}/9; sleep 0.005; done' 2>/dev/null`
      of.machine.sh(`${sender} >/dev/null 2>&1 & echo $!`)
      expect(of.add({ pod: name }).status).toBe(0)
    }
    await expect.poll(() => datagrams('open')).toBeGreaterThan(10)
    expect(datagrams('closed')).toBe(0)
  })
})

describe('addresses of another plugin', () => {
  const config = (folder: string): Readonly<Record<string, unknown>> => ({
    ipam: { type: 'host-local', dataDir: folder, ranges: [[{ subnet: '10.3.0.0/24' }], [{ subnet: 'fd00:3::/64' }]] },
  })

  test('are used as our own are, and given back', async () => {
    await of.ready()
    copyFileSync('/usr/lib/cni/host-local', join(of.binDir, 'host-local'))
    const ipam = config(join(of.machine.folder, 'host-local'))
    const [a] = [of.add({ pod: 'a' }, ipam), of.add({ pod: 'b' }, ipam)]
    expect(ips(a)).toEqual(['10.3.0.2/32', 'fd00:3::2/128'])
    expect(of.call('ADD', { pod: 'a' }, ipam)).toEqual(a)
    for (const target of ['10.3.0.3', 'fd00:3::3']) expect(of.succeeds({ pod: 'a' }, `ping -c 1 -W 2 ${target}`)).toBe(true)
    // what it was given then is on disk
    for (const pod of ['a', 'b']) expect(of.call('DEL', { pod })).toEqual({ status: 0, output: {} })
    expect(readdirSync(join(of.machine.folder, 'host-local', 'netplane')).filter((name) => /^(10|fd)/.test(name))).toEqual([])
  })

  test('are checked by that plugin, and what no sandbox has is collected by it, though nothing else knows of it', async () => {
    await of.ready()
    copyFileSync('/usr/lib/cni/host-local', join(of.binDir, 'host-local'))
    const folder = join(of.machine.folder, 'host-local')
    const leases = (): string[] => readdirSync(join(folder, 'netplane')).filter((name) => /^(10|fd)/.test(name))
    const ipam = config(folder)
    const prevResult = of.add({ pod: 'a' }, ipam).output
    expect(of.call('CHECK', { pod: 'a' }, { ...ipam, prevResult })).toEqual({ status: 0, output: {} })
    // a runtime and an agent that have lost their state do not know of these
    for (let n = 20; n < 40; n++) writeFileSync(join(folder, 'netplane', `10.3.0.${n}`), `lost-${n}\r\neth0`)
    const valid = { 'cni.dev/valid-attachments': [{ containerID: 'a-1', ifname: 'eth0' }] }
    expect(of.call('GC', { pod: 'a' }, { ...ipam, ...valid })).toEqual({ status: 0, output: {} })
    expect(leases().sort()).toEqual(['10.3.0.2', 'fd00:3::2'])
    for (const name of leases()) rmSync(join(folder, 'netplane', name))
    expect(of.call('CHECK', { pod: 'a' }, { ...ipam, prevResult })).toMatchObject({ status: 1 })
  })

  test('are collected by a plugin that knows the verb, which is told what is valid', async () => {
    await of.ready()
    const calls = join(of.machine.folder, 'calls')
    writeFileSync(join(of.binDir, 'newer'), `#!/bin/sh\n{ echo "$CNI_COMMAND"; cat; echo; } >> ${calls}\n`, { mode: 0o755 })
    const valid = [{ containerID: 'c-1', ifname: 'eth0' }]
    const list = { 'cni.dev/attachments': valid, ipam: { type: 'newer' } }
    expect(of.call('GC', { pod: 'a' }, list)).toEqual({ status: 0, output: {} })
    const [command, text = ''] = readFileSync(calls, 'utf8').split('\n')
    expect([command, JSON.parse(text)]).toMatchObject([
      'GC',
      { cniVersion: '1.1.0', name: 'netplane', 'cni.dev/valid-attachments': valid, 'cni.dev/attachments': valid },
    ])
  })

  test('of a call that failed, or of which nothing is known, are given back by that plugin', async () => {
    await of.ready()
    const calls = join(of.machine.folder, 'calls')
    // says what it was asked, and gives what cannot be used
    writeFileSync(
      join(of.binDir, 'odd'),
      `#!/bin/sh\ncat > /dev/null\necho "$CNI_COMMAND $CNI_CONTAINERID $CNI_ARGS" >> ${calls}\nexit 1\n`,
      {
        mode: 0o755,
      },
    )
    const odd = { ipam: { type: 'odd' } }
    const args = 'IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=a'
    expect(of.add({ pod: 'a' }, odd)).toMatchObject({ status: 1, output: { msg: 'plugin odd: ended with 1' } })
    expect(of.call('DEL', { pod: 'a' }, odd)).toMatchObject({ status: 1 })
    expect(readFileSync(calls, 'utf8').trim().split('\n')).toEqual([`ADD a-1 ${args}`, `DEL a-1 ${args}`, `DEL a-1 ${args}`])
  })

  test('that come when no call waits any more go back at once: no DEL may come after them', async () => {
    await of.ready()
    const calls = join(of.machine.folder, 'calls')
    const given = '{"cniVersion":"1.0.0","ips":[{"address":"10.3.0.9/24"}]}'
    const script = `cat > /dev/null\necho "$CNI_COMMAND" >> ${calls}\n[ $CNI_COMMAND != ADD ] || { sleep 4; echo '${given}'; }\n`
    writeFileSync(join(of.binDir, 'slow'), `#!/bin/sh\n${script}`, { mode: 0o755 })
    const slow = { ipam: { type: 'slow' } }
    expect(refusalOf(of.add({ pod: 'a' }, { ...slow, timeoutSeconds: 1 }))).toBe(
      '11: not ready in time: its address is not written down yet',
    )
    // this one comes before what it is to take back is given: it is to come again, for the agent might be killed
    const del = (): string => refusalOf(of.call('DEL', { pod: 'a' }, slow))
    expect(del()).toBe('11: another plugin is still giving it addresses')
    const asked = (): readonly string[] => readFileSync(calls, 'utf8').trim().split('\n')
    await expect.poll(asked).toEqual(['ADD', 'DEL', 'DEL'])
    expect([of.call('DEL', { pod: 'a' }, slow).status, of.saved()]).toEqual([0, []])
  })

  test('that are long in coming are waited for no longer than the sandbox is wanted', async () => {
    await of.ready()
    const given = '{"cniVersion":"1.0.0","ips":[{"address":"10.3.0.9/24"}]}'
    const calls = join(of.machine.folder, 'calls')
    const script = `cat > /dev/null\n[ $CNI_COMMAND != ADD ] || { echo ADD >> ${calls}; sleep 4; echo '${given}'; }\n`
    writeFileSync(join(of.binDir, 'slow'), `#!/bin/sh\n${script}`, { mode: 0o755 })
    const slow = { ipam: { type: 'slow' } }
    const asked = (): number => (existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\n').length : 0)
    // less than the other plugin takes
    await withinBestOfThree(3500, async (tries) => {
      // the manifest has no uid: it tells no sandbox from another
      const later = { pod: 'a', id: `later-${tries}`, uid: 'u2' }
      const early = of.beginAdd({ pod: 'a', id: `early-${tries}`, uid: 'u1' }, slow)
      await expect.poll(asked).toBe(tries)
      const began = performance.now()
      expect(of.add(later).status).toBe(0)
      const took = performance.now() - began
      const msg = `another sandbox of the pod is asked for: ${later.id}`
      await expect.poll(early).toMatchObject({ status: 1, output: { code: 11, msg } })
      expect(of.saved()).toEqual([`${later.id}.json`])
      expect(of.call('DEL', later)).toEqual({ status: 0, output: {} })
      return took
    })
  })

  test('of one that does not take them back keep only its own sandbox', async () => {
    await of.ready()
    const given = '{"cniVersion":"1.0.0","ips":[{"address":"10.3.0.9/24"}]}'
    writeFileSync(join(of.binDir, 'odd'), `#!/bin/sh\ncat > /dev/null\n[ $CNI_COMMAND = ADD ] && echo '${given}'\n`, { mode: 0o755 })
    expect(ips(of.add({ pod: 'a' }, { ipam: { type: 'odd' } }))).toEqual(['10.3.0.9/32'])
    of.add({ pod: 'b' })
    expect(of.saved()).toEqual(['a-1.json', 'b-1.json'])
    expect(refusalOf(of.call('GC', { pod: 'x' }, { 'cni.dev/valid-attachments': [] }))).toBe('5: plugin odd: ended with 1')
    expect([of.saved(), of.held()]).toEqual([['a-1.json'], []])
  })

  test('of one that is not there: its name is in the answer', async () => {
    await of.ready()
    expect(of.add({ pod: 'a' }, { ipam: { type: 'nope' } }).output).toMatchObject({
      code: 7,
      msg: `ipam.type: there is no plugin nope in ${of.binDir}`,
    })
    expect(of.saved()).toEqual([])
  })
})

describe('DEL', () => {
  test('takes all away; again, or without anything there, it succeeds', async () => {
    await of.ready()
    of.add({ pod: 'a' })
    expect(of.held()).toEqual(['a-1'])
    for (let times = 0; times < 2; times++) expect(of.call('DEL', { pod: 'a' })).toEqual({ status: 0, output: {} })
    expect([of.saved(), of.held()]).toEqual([[], []])
    expect(of.machine.sh(`ip -o link; ip route`)).not.toMatch(new RegExp(`${host('a')}|10\\.1\\.1\\.`))
    expect(of.call('DEL', { pod: 'nobody' }).status).toBe(0)
    // rests first
    expect(ips(of.add({ pod: 'b' }))).toContain('10.1.1.2/32')
  })

  test('leaves a veth that by now belongs to another sandbox, of which this agent knows nothing', async () => {
    await of.ready()
    const added = of.add({ pod: 'a' })
    expect(of.machine.sh(`ip link show ${host('a')}`)).toContain('alias a-1')
    of.machine.sh(`ip link set ${host('a')} alias a-2`)
    expect(of.call('CHECK', { pod: 'a' }, { prevResult: added.output }).output).toMatchObject({
      code: 101,
      msg: `${host('a')} is that of the sandbox a-2`,
    })
    expect(of.call('DEL', { pod: 'a' })).toEqual({ status: 0, output: {} })
    expect([of.saved(), of.held()]).toEqual([[], []])
    expect(of.machine.sh(`ip link show ${host('a')}`)).toContain('alias a-2')
  })

  test('of a sandbox that is still being added ends both calls at once', async () => {
    await of.ready()
    await withinBestOfThree(5000, async (tries) => {
      const ghost = { pod: 'ghost', id: `ghost-${tries}` }
      const answer = of.beginAdd(ghost)
      const began = performance.now()
      await expect
        .poll(() => {
          expect(of.call('DEL', ghost)).toEqual({ status: 0, output: {} })
          return answer()
        })
        .toMatchObject({ status: 1, output: { code: 11, msg: `${ghost.id} is deleted already` } })
      return performance.now() - began
    })
    expect([of.saved(), of.machine.sh('ip -br link')]).toEqual([[], expect.not.stringContaining(host('ghost'))])
  })

  test('of a sandbox whose namespace is gone succeeds', async () => {
    await of.ready()
    of.add({ pod: 'a' })
    of.dropNetns({ pod: 'a' })
    expect(of.call('DEL', { pod: 'a' })).toEqual({ status: 0, output: {} })
    expect(of.held()).toEqual([])
  })
})

describe('CHECK', () => {
  const check = (previous: Outcome): Outcome => of.call('CHECK', { pod: 'a' }, { prevResult: previous.output })

  test('is content with what ADD has made, and says what is missing', async () => {
    await of.ready()
    const added = of.add({ pod: 'a' })
    expect(check(added)).toEqual({ status: 0, output: {} })
    expect(check({ status: 0, output: { ips: [{ address: '10.9.9.9/32' }] } }).output).toMatchObject({
      code: 101,
      msg: "10.9.9.9 is not the pod's",
    })
    of.inPod({ pod: 'a' }, 'ip addr del 10.1.1.1/32 dev eth0')
    expect(check(added).output).toMatchObject({ code: 101, msg: 'eth0 has lost 10.1.1.1' })
    expect(of.call('ADD', { pod: 'a' })).toEqual(added)
    expect(check(added).status).toBe(0)
    of.machine.sh(`ip link del ${host('a')}`)
    expect(check(added).output).toMatchObject({ code: 101, msg: `${host('a')} is gone` })
    expect(of.call('CHECK', { pod: 'b' }, { prevResult: added.output }).output).toMatchObject({ code: 3 })
  })
})

describe('GC and STATUS', () => {
  test('what is not valid goes, and with it what no sandbox has', async () => {
    await of.ready()
    for (const pod of ['a', 'b']) of.add({ pod })
    const valid = { 'cni.dev/valid-attachments': [{ containerID: 'b-1', ifname: 'eth0' }] }
    expect(of.call('GC', { pod: 'x' }, valid).status).toBe(0)
    expect([of.saved(), of.held()]).toEqual([['b-1.json'], ['b-1']])
    expect(of.succeeds({ pod: 'b' }, 'ping -c 1 -W 2 192.0.2.1')).toBe(true)
    expect(of.call('GC', { pod: 'x' }).output).toMatchObject({ code: 7, msg: 'cni.dev/valid-attachments: is missing' })
  })

  test('a node that has not been ready since it was started says why; later it is, with and without an agent', async () => {
    const status = (): Outcome => of.call('STATUS', { pod: 'x' })
    const agent = await of.ready()
    expect(status()).toEqual({ status: 0, output: {} })
    await agent.kill()
    expect(status()).toEqual({ status: 0, output: {} })
    expect(refusalOf(of.call('ADD', { pod: 'a' }))).toMatch(/^11: .*does not listen/)
    // as after a boot
    rmSync(join(of.machine.state, 'cni.sock.ready'))
    expect(refusalOf(status())).toMatch(/^50: .*does not listen/)
    // without its node no agent is ready
    const nodes = join(of.machine.resources, 'nodes.json')
    renameSync(nodes, join(of.machine.folder, 'nodes.json'))
    const next = of.agent()
    await next.event('cni.listening')
    expect(refusalOf(status())).toMatch(/^50: .*: starting/)
    renameSync(join(of.machine.folder, 'nodes.json'), nodes)
    await next.event('dataplane.ready')
    await expect.poll(status).toEqual({ status: 0, output: {} })
    expect(status()).toEqual({ status: 0, output: {} })
    // each once, however often it was asked
    const told = (): unknown[] => next.events('cni.status-changed').map((line) => line['told'])
    const ask = (): unknown => {
      // with this file the plugin answers without the agent
      rmSync(join(of.machine.state, 'cni.sock.ready'), { force: true })
      status()
      return told().at(-1)
    }
    await expect.poll(ask).toBe('ready')
    expect(new Set(told()).size).toBe(told().length)
    expect(of.call('VERSION', { pod: 'x' }).output).toMatchObject({ supportedVersions: ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] })
  })
})
