// SPDX-License-Identifier: Apache-2.0
/** What the next agent knows of sandboxes. Layer: test. */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { AttachmentFiles, type Attachment } from '#agent/cni/attachments.ts'

const OTHERS: readonly Partial<Attachment>[] = [
  { ours: true, delegate: undefined, uid: 'u1' },
  { ours: true, delegate: undefined },
  { ours: true, delegate: { type: 'host-local', config: '{"name":"other"}', path: '/opt/cni/bin' } },
  { ours: false, delegate: undefined, mtu: 0 },
]

test.each(OTHERS)('the next agent has all of an attachment, and nothing of one whose write was cut short: %o', (others) => {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-attachments-'))
  try {
    const attachment = {
      ...{ containerId: 'a-1', ifname: 'eth0', netns: '/run/netns/a', namespace: 'default', pod: 'a', host: 'npl1', mtu: 1450 },
      ...{ addresses: [parseAddr('10.0.0.1'), parseAddr('fd00::1')], ours: true, delegate: undefined },
      ...others,
    }
    new AttachmentFiles(folder).save(attachment)
    writeFileSync(join(folder, 'killed.json.part'), '{')
    const next = new AttachmentFiles(folder)
    expect(next.load()).toEqual([])
    expect([next.all(), readdirSync(folder)]).toEqual([[attachment], ['a-1.json']])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
