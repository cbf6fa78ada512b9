// SPDX-License-Identifier: Apache-2.0
/** A kernel without nf_tables, with netfilter's tools installed; the real one is asked in
 * test/kernel/firewall/netfilter-cases.ts. Layer: test. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { endTakeover, findKubeProxy } from '#agent/dataplane/kube-proxy/cleanup.ts'
import { hasNfTables, netfilterTools } from '#agent/interfaces/netlink/nf-tables.ts'
import { encodeMessage } from '#agent/interfaces/netlink/message.ts'

const NLMSG_ERROR = 2
const PORT = 7

/** A kernel that answers with this errno. */
function answering(errno: number): () => never {
  let sent: Uint8Array | undefined
  const socket = {
    port: PORT,
    send: (bytes: Uint8Array) => (sent = bytes),
    receiveWait: () => {
      const payload = Buffer.alloc(4 + (sent?.length ?? 0))
      payload.writeInt32LE(-errno)
      const answer = encodeMessage({ type: NLMSG_ERROR, flags: 0, seq: Buffer.from(sent ?? []).readUInt32LE(8), payload })
      answer.writeUInt32LE(PORT, 12)
      return answer
    },
    close: () => undefined,
  }
  return () => socket as never
}

describe('whether the kernel has nf_tables', () => {
  test('an answer says yes', () => {
    expect(hasNfTables(answering(0))).toBe(true)
  })
  test('no such part of netfilter says no', () => {
    expect(hasNfTables(answering(22))).toBe(false)
  })
  test('no netlink of netfilter says no', () => {
    const refuse = (): never => {
      throw Object.assign(new Error('socket: Protocol not supported'), { code: 'EPROTONOSUPPORT' })
    }
    expect(hasNfTables(refuse)).toBe(false)
  })
  test('a refusal for want of privilege says neither', () => {
    expect(() => hasNfTables(answering(1))).toThrow(/not permitted/)
  })
})

describe('tools of netfilter', () => {
  const dir = mkdtempSync(join(tmpdir(), 'netplane-nft-'))
  const path = process.env['PATH']
  beforeAll(() => {
    for (const tool of ['nft', 'iptables-nft-save', 'ip6tables-nft-save', 'iptables-legacy-save']) {
      writeFileSync(join(dir, tool), '#!/bin/sh\necho "cache initialization failed: Operation not supported" >&2\nexit 1\n')
      chmodSync(join(dir, tool), 0o755)
    }
    process.env['PATH'] = `${dir}:${path ?? ''}`
  })
  afterAll(() => {
    process.env['PATH'] = path
    rmSync(dir, { recursive: true })
  })
  const run = (has: boolean): ReturnType<typeof netfilterTools> => netfilterTools({ timeoutMs: 30_000 }, () => has)

  test.each([['nft'], ['iptables-nft-save'], ['ip6tables-nft-save']])(
    '%s that fails on a kernel without nf_tables is as good as not installed',
    async (tool) => {
      expect(await run(false)([tool])).toBeUndefined()
      await expect(run(true)([tool])).rejects.toMatchObject({ code: 'COMMAND' })
    },
  )

  test('a tool of the old kind that fails has failed', async () => {
    await expect(run(false)(['iptables-legacy-save'])).rejects.toMatchObject({ code: 'COMMAND' })
  })

  test('a cleanup and a look for kube-proxy have nothing to say there', async () => {
    writeFileSync(join(dir, 'iptables-legacy-save'), '#!/bin/sh\n')
    writeFileSync(join(dir, 'ip6tables-legacy-save'), '#!/bin/sh\n', { mode: 0o755 })
    expect(await endTakeover(run(false))).toBe(false)
    expect(await findKubeProxy(run(false))).toEqual([])
  })
})
