// SPDX-License-Identifier: Apache-2.0
/** The real `nft` on kernels with nf_tables and without: a guest has the program always, its kernel that part only
 * where it is built in. Layer: test. */
import { endTakeover, findKubeProxy } from '#agent/dataplane/kube-proxy/cleanup.ts'
import { hasNfTables } from '#agent/interfaces/netlink/nf-tables.ts'
import { errorText } from '#lib/base/errors.ts'
import { toolRunner } from '#lib/base/os/run-tool.ts'

type Count = (name: string, wrong: string | undefined) => void

/** Each must have nothing to say, and no error. */
export async function netfilterCases(count: Count): Promise<void> {
  const works = await wrong(async () => {
    const listing = await toolRunner({ timeoutMs: 60_000 })(['nft', 'list', 'tables'])
    return listing === undefined ? 'is not in the guest' : undefined
  })
  const has = hasNfTables()
  console.log(`facts: nf_tables=${String(has)}`)
  count(
    'the kernel says whether it has nf_tables, and nft works there only',
    (works === undefined) === has ? undefined : (works ?? 'nft works'),
  )
  count('what a takeover left is looked for', await wrong(async () => ((await endTakeover()) ? 'something was there' : undefined)))
  count('rules of kube-proxy are looked for', await wrong(async () => ((await findKubeProxy()).length > 0 ? 'some were found' : undefined)))
}

async function wrong(run: () => Promise<string | undefined>): Promise<string | undefined> {
  try {
    return await run()
  } catch (thrown) {
    return errorText(thrown)
  }
}
