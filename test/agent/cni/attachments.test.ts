// SPDX-License-Identifier: Apache-2.0
/** What the next agent knows of sandboxes. Layer: test. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parseAddr } from '#lib/base/ip.ts'
import { AttachmentFiles, type Attachment } from '#agent/cni/attachments.ts'

test.each(['u1', undefined])('all of an attachment is there for the next agent, of a pod with the uid %s', (uid) => {
  const folder = mkdtempSync(join(tmpdir(), 'netplane-attachments-'))
  try {
    const attachment: Attachment = {
      ...{ containerId: 'a-1', ifname: 'eth0', netns: '/run/netns/a', namespace: 'default', pod: 'a', host: 'npl1', mtu: 1450 },
      ...{ addresses: [parseAddr('10.0.0.1'), parseAddr('fd00::1')], ours: true, delegate: undefined },
      ...(uid === undefined ? {} : { uid }),
    }
    new AttachmentFiles(folder).save(attachment)
    const next = new AttachmentFiles(folder)
    expect(next.load()).toEqual([])
    expect(next.all()).toEqual([attachment])
  } finally {
    rmSync(folder, { recursive: true })
  }
})
