// SPDX-License-Identifier: Apache-2.0
/** Asks etcd to forget its past. Layer: test. */

const ETCD = 'http://127.0.0.1:2379'

async function ask(path: string, body: object): Promise<unknown> {
  const answer = await fetch(`${ETCD}${path}`, { method: 'POST', body: JSON.stringify(body) })
  if (!answer.ok) throw new Error(`etcd ${path}: ${answer.status} ${await answer.text()}`)
  return await answer.json()
}

/** Everything before the present. */
export async function compact(): Promise<void> {
  const { header } = (await ask('/v3/kv/range', { key: Buffer.from('\0').toString('base64'), limit: '1' })) as {
    header: { revision: string }
  }
  await ask('/v3/kv/compaction', { revision: header.revision, physical: true })
}
