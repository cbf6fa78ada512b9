// SPDX-License-Identifier: Apache-2.0
/** explain of manifests on disk: whole answers, as people read them and as JSON. Layer: test. */
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { isObject } from '#lib/base/object.ts'
import { readArgs } from '../../cli/args.ts'
import { explainCommand } from '../../cli/explain/command.ts'
import { explain } from '../../cli/explain/manifests/explain.ts'
import { packetsOf } from '../../cli/explain/manifests/flows.ts'
import { readFlow } from '../../cli/explain/query.ts'
import { explanationText } from '../../cli/explain/manifests/text.ts'
import { loadClusters } from '../../cli/explain/manifests/load-cluster.ts'
import type { CommandResult } from '../../cli/command-result.ts'

const here = fileURLToPath(new URL('.', import.meta.url))

async function run(words: readonly string[]): Promise<CommandResult> {
  const order = readArgs(['explain', '--resources', join(here, 'cluster'), ...words])
  if (order.kind !== 'explain') throw new Error('another command')
  return await explainCommand(order)
}

async function asked(line: string): Promise<string> {
  const { text, exitCode } = await run(line.split(' '))
  expect(exitCode).toBe(0)
  return text
}

describe('explain --resources', () => {
  test('a service: each backend with another outcome; staged policies', async () => {
    expect(await asked('shop/web svc/shop/db:sql')).toMatchInlineSnapshot(`
      "TCP 10.1.0.2:50000 (shop/web on n1) > 10.96.0.10:5432
        verdict: depends on the backend
        service: shop/db, 10.96.0.10:5432/TCP, at n1, for inside: 2 backends
        to 10.1.0.3:5432 (shop/db-0 on n1): allow
        CHECK                    TIER      OUTCOME  BY                                   RULE  ID          TEXT
        egress shop/web on n1    -         allow    Profile kns.shop                     0     -           allow
        ingress shop/db-0 on n1  security  pass     GlobalNetworkPolicy security.no-old  1     2018846189  pass
                                 default   allow    KubernetesNetworkPolicy shop/db      0     3919635314  allow tcp from (netplane.io/orchestrator == "k8s" && netplane.io/namespace == "shop" && app == "web") to ports "sql"
        to 10.1.1.3:5432 (shop/db-1 on n2): deny
        CHECK                                                   TIER      OUTCOME  BY                                   RULE  ID          TEXT
        egress shop/web on n1                                   -         allow    Profile kns.shop                     0     -           allow
        ingress HostEndpoint n2-eth0 on n2, untracked           -         open     -                                    -     -           end of the tier: no rule of GlobalNetworkPolicy/raw
        ingress HostEndpoint n2-eth0 on n2, before translation  -         open     -                                    -     -           end of the tier: no rule of GlobalNetworkPolicy/early
        ingress shop/db-1 on n2                                 security  deny     GlobalNetworkPolicy security.no-old  0     2018846445  deny to has(old)

      with the staged policies: depends -> deny
        to 10.1.0.3:5432 (shop/db-0 on n1): deny
        CHECK                  TIER     OUTCOME  BY  RULE  ID          TEXT
        egress shop/web on n1  default  deny     -   -     2773330387  end of the tier: no rule of StagedNetworkPolicy/shop/default.later
        to 10.1.1.3:5432 (shop/db-1 on n2): deny
        CHECK                  TIER     OUTCOME  BY  RULE  ID          TEXT
        egress shop/web on n1  default  deny     -   -     2773330387  end of the tier: no rule of StagedNetworkPolicy/shop/default.later
      "
    `)
  })

  test('a namespace whose policies there is no room for: closed, as programs have it', async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'np-explain-'))
    const peers = (net: number): object[] =>
      Array.from({ length: 16_300 }, (_, at) => ({ ipBlock: { cidr: `198.${net}.${at >> 8}.${at & 255}/32` } }))
    const metadata = { name: 'big', namespace: 'shop' }
    const spec = { podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: [{ from: peers(18) }], egress: [{ to: peers(19) }] }
    const candidate = join(folder.path, 'big.json')
    writeFileSync(candidate, JSON.stringify({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec }))
    const { text, warnings } = await run(['--with', candidate, 'shop/web', 'shop/db-0:sql'])
    expect(warnings).not.toContain('DEFECT')
    expect(text).toMatchInlineSnapshot(`
      "TCP 10.1.0.2:50000 (shop/web on n1) > 10.1.0.3:5432 (shop/db-0 on n1)
        verdict: allow
        CHECK                    TIER      OUTCOME  BY                                   RULE  ID          TEXT
        egress shop/web on n1    -         allow    Profile kns.shop                     0     -           allow
        ingress shop/db-0 on n1  security  pass     GlobalNetworkPolicy security.no-old  1     2018846189  pass
                                 default   allow    KubernetesNetworkPolicy shop/db      0     3919635314  allow tcp from (netplane.io/orchestrator == "k8s" && netplane.io/namespace == "shop" && app == "web") to ports "sql"

      with the staged policies: allow -> deny
        CHECK                  TIER     OUTCOME  BY  RULE  ID          TEXT
        egress shop/web on n1  default  deny     -   -     2773330387  end of the tier: no rule of StagedNetworkPolicy/shop/default.later

      with the candidate: allow -> deny
        CHECK                    TIER  OUTCOME  BY  RULE  ID          TEXT
        egress shop/web on n1    -     deny     -   -     3867278368  there is no room on the node for the policies of its namespace: closed
        ingress shop/db-0 on n1  -     deny     -   -     3867278368  there is no room on the node for the policies of its namespace: closed

      with the candidate and the staged policies: deny, as before
        CHECK                    TIER  OUTCOME  BY  RULE  ID          TEXT
        egress shop/web on n1    -     deny     -   -     3867278368  there is no room on the node for the policies of its namespace: closed
        ingress shop/db-0 on n1  -     deny     -   -     3867278368  there is no room on the node for the policies of its namespace: closed

      TCP [fd00:1::2]:50000 (shop/web on n1) > [fd00:1::3]:5432 (shop/db-0 on n1)
        verdict: allow
        CHECK                    TIER      OUTCOME  BY                                   RULE  ID          TEXT
        egress shop/web on n1    -         allow    Profile kns.shop                     0     -           allow
        ingress shop/db-0 on n1  security  pass     GlobalNetworkPolicy security.no-old  1     2018846189  pass
                                 default   allow    KubernetesNetworkPolicy shop/db      0     3919635314  allow tcp from (netplane.io/orchestrator == "k8s" && netplane.io/namespace == "shop" && app == "web") to ports "sql"

      with the staged policies: allow -> deny
        CHECK                  TIER     OUTCOME  BY  RULE  ID          TEXT
        egress shop/web on n1  default  deny     -   -     2773330387  end of the tier: no rule of StagedNetworkPolicy/shop/default.later

      with the candidate: allow -> deny
        CHECK                    TIER  OUTCOME  BY  RULE  ID          TEXT
        egress shop/web on n1    -     deny     -   -     3867278368  there is no room on the node for the policies of its namespace: closed
        ingress shop/db-0 on n1  -     deny     -   -     3867278368  there is no room on the node for the policies of its namespace: closed

      with the candidate and the staged policies: deny, as before
        CHECK                    TIER  OUTCOME  BY  RULE  ID          TEXT
        egress shop/web on n1    -     deny     -   -     3867278368  there is no room on the node for the policies of its namespace: closed
        ingress shop/db-0 on n1  -     deny     -   -     3867278368  there is no room on the node for the policies of its namespace: closed
      "
    `)
  })

  test('a pod of both families, as it would be with a candidate', async () => {
    const candidate = join(here, 'candidates/changes.yaml')
    expect((await run(['--with', candidate, 'shop/web', 'shop/db-1:sql'])).text).toMatchInlineSnapshot(`
      "TCP 10.1.0.2:50000 (shop/web on n1) > 10.1.1.3:5432 (shop/db-1 on n2)
        verdict: deny
        CHECK                                                   TIER      OUTCOME  BY                                   RULE  ID          TEXT
        egress shop/web on n1                                   -         allow    Profile kns.shop                     0     -           allow
        ingress HostEndpoint n2-eth0 on n2, untracked           -         open     -                                    -     -           end of the tier: no rule of GlobalNetworkPolicy/raw
        ingress HostEndpoint n2-eth0 on n2, before translation  -         open     -                                    -     -           end of the tier: no rule of GlobalNetworkPolicy/early
        ingress shop/db-1 on n2                                 security  deny     GlobalNetworkPolicy security.no-old  0     2018846445  deny to has(old)

      with the staged policies: deny, as before
        CHECK                  TIER     OUTCOME  BY  RULE  ID          TEXT
        egress shop/web on n1  default  deny     -   -     2773330387  end of the tier: no rule of StagedNetworkPolicy/shop/default.later

      with the candidate: deny -> allow
        CHECK                    TIER      OUTCOME  BY                                   RULE  ID          TEXT
        ingress shop/db-1 on n2  security  pass     GlobalNetworkPolicy security.no-old  0     2018846445  pass
                                 default   allow    KubernetesNetworkPolicy shop/db      0     3919635314  allow tcp from (netplane.io/orchestrator == "k8s" && netplane.io/namespace == "shop" && app == "web") to ports "sql"

      with the candidate and the staged policies: deny, as before
        CHECK                    TIER      OUTCOME  BY                                   RULE  ID          TEXT
        ingress shop/db-1 on n2  security  pass     GlobalNetworkPolicy security.no-old  0     2018846445  pass
                                 default   allow    KubernetesNetworkPolicy shop/db      0     3919635314  allow tcp from (netplane.io/orchestrator == "k8s" && netplane.io/namespace == "shop" && app == "web") to ports "sql"

      TCP [fd00:1::2]:50000 (shop/web on n1) > [fd00:1:0:1::3]:5432 (shop/db-1 on n2)
        verdict: deny
        CHECK                                                   TIER      OUTCOME  BY                                   RULE  ID          TEXT
        egress shop/web on n1                                   -         allow    Profile kns.shop                     0     -           allow
        ingress HostEndpoint n2-eth0 on n2, untracked           -         open     -                                    -     -           end of the tier: no rule of GlobalNetworkPolicy/raw
        ingress HostEndpoint n2-eth0 on n2, before translation  -         open     -                                    -     -           end of the tier: no rule of GlobalNetworkPolicy/early
        ingress shop/db-1 on n2                                 security  deny     GlobalNetworkPolicy security.no-old  0     2018846445  deny to has(old)

      with the staged policies: deny, as before
        CHECK                  TIER     OUTCOME  BY  RULE  ID          TEXT
        egress shop/web on n1  default  deny     -   -     2773330387  end of the tier: no rule of StagedNetworkPolicy/shop/default.later

      with the candidate: deny -> allow
        CHECK                    TIER      OUTCOME  BY                                   RULE  ID          TEXT
        ingress shop/db-1 on n2  security  pass     GlobalNetworkPolicy security.no-old  0     2018846445  pass
                                 default   allow    KubernetesNetworkPolicy shop/db      0     3919635314  allow tcp from (netplane.io/orchestrator == "k8s" && netplane.io/namespace == "shop" && app == "web") to ports "sql"

      with the candidate and the staged policies: deny, as before
        CHECK                    TIER      OUTCOME  BY                                   RULE  ID          TEXT
        ingress shop/db-1 on n2  security  pass     GlobalNetworkPolicy security.no-old  0     2018846445  pass
                                 default   allow    KubernetesNetworkPolicy shop/db      0     3919635314  allow tcp from (netplane.io/orchestrator == "k8s" && netplane.io/namespace == "shop" && app == "web") to ports "sql"
      "
    `)
  })

  test('a node port from outside: host policy before translation, and the pods of another node', async () => {
    expect(await asked('203.0.113.9 node/n2:30032')).toMatchInlineSnapshot(`
      "TCP 203.0.113.9:50000 > 192.0.2.2:30032 (node n2)
        verdict: deny
        service: shop/db, node port 192.0.2.2:30032/TCP, at n2, for outside: 2 backends
        to 10.1.0.3:5432 (shop/db-0 on n1): deny
        CHECK                                                   TIER      OUTCOME  BY                                   RULE  ID          TEXT
        ingress HostEndpoint n2-eth0 on n2, untracked           -         open     -                                    -     -           end of the tier: no rule of GlobalNetworkPolicy/raw
        ingress HostEndpoint n2-eth0 on n2, before translation  default   deny     GlobalNetworkPolicy early            0     4173572678  deny v4 tcp from nets 203.0.113.0/24 to ports 30032
        ingress shop/db-0 on n1                                 security  pass     GlobalNetworkPolicy security.no-old  1     2018846189  pass
                                                                default   deny     -                                    -     881118879   end of the tier: no rule of KubernetesNetworkPolicy/shop/db
        to 10.1.1.3:5432 (shop/db-1 on n2): deny
        CHECK                                                   TIER      OUTCOME  BY                                   RULE  ID          TEXT
        ingress HostEndpoint n2-eth0 on n2, untracked           -         open     -                                    -     -           end of the tier: no rule of GlobalNetworkPolicy/raw
        ingress HostEndpoint n2-eth0 on n2, before translation  default   deny     GlobalNetworkPolicy early            0     4173572678  deny v4 tcp from nets 203.0.113.0/24 to ports 30032
        ingress shop/db-1 on n2                                 security  deny     GlobalNetworkPolicy security.no-old  0     2018846445  deny to has(old)
      "
    `)
  })

  test.each(['n1', 'n2'])('a node port from a pod: its egress rules see it as it was asked for, of node %s', async (node) => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'np-explain-'))
    const candidate = join(folder.path, 'ports.json')
    const metadata = { name: 'ports', namespace: 'shop' }
    const to = ['192.0.2.1/32', '192.0.2.2/32'].map((cidr) => ({ ipBlock: { cidr } }))
    const spec = { podSelector: { matchLabels: { app: 'web' } }, policyTypes: ['Egress'], egress: [{ to, ports: [{ port: 30032 }] }] }
    writeFileSync(candidate, JSON.stringify({ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec }))
    const { text, warnings } = await run(['--with', candidate, 'shop/web', `node/${node}:30032`])
    expect(warnings).not.toContain('DEFECT')
    const [, changed = ''] = text.split('with the candidate: ')
    expect(changed).toMatch(/egress shop\/web on n1 .* allow +KubernetesNetworkPolicy shop\/ports +0 .* to nets 192\.0\.2\.[12]\/32/)
    expect(changed).not.toMatch(/egress shop\/web on n1 .* deny +- .*KubernetesNetworkPolicy\/shop\/ports/)
  })

  test('a pod by its own service: of what denies it only ClusterNetworkPolicies count', async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'np-explain-'))
    const candidate = join(folder.path, 'admin.json')
    const subject = { namespaces: {} }
    const egress = [{ action: 'Deny', to: [{ networks: ['0.0.0.0/0'] }] }]
    const admin = { apiVersion: 'policy.networking.k8s.io/v1alpha2', kind: 'ClusterNetworkPolicy', metadata: { name: 'admin' } }
    writeFileSync(candidate, JSON.stringify({ ...admin, spec: { tier: 'Admin', priority: 1, subject, egress } }))
    const { text, warnings } = await run(['--with', candidate, 'shop/db-0', 'svc/shop/db:sql'])
    expect(warnings).not.toContain('DEFECT')
    const [now = '', changed = ''] = text.split('with the candidate: ')
    // shop/db lets only "web" in
    expect(now).toContain('to 10.1.0.3:5432 (shop/db-0 on n1): allow')
    expect(changed).toMatch(/egress shop\/db-0 on n1 +adminnetworkpolicy +deny +ClusterNetworkPolicy admin/)
    expect((await run(['--with', candidate, 'shop/db-0', '10.1.0.3:5432'])).text).toContain('with the candidate: no change')
  })

  test('a node itself: untracked, before translation, its own', async () => {
    expect(await asked('198.51.100.1 192.0.2.2:8080')).toMatchInlineSnapshot(`
      "TCP 198.51.100.1:50000 > 192.0.2.2:8080 (node n2)
        verdict: allow
        CHECK                                                   TIER     OUTCOME  BY                         RULE  ID          TEXT
        ingress HostEndpoint n2-eth0 on n2, untracked           -        open     -                          -     -           end of the tier: no rule of GlobalNetworkPolicy/raw
        ingress HostEndpoint n2-eth0 on n2, before translation  -        open     -                          -     -           end of the tier: no rule of GlobalNetworkPolicy/early
        ingress HostEndpoint n2-eth0 on n2                      default  allow    GlobalNetworkPolicy hosts  0     1511554899  allow tcp to ports 8080
      "
    `)
  })

  test.each([
    ['shop/web 10.96.0.10:99', 'verdict: drop: no service has port 99/TCP at 10.96.0.10'],
    ['--protocol icmp shop/web svc/shop/db', 'verdict: drop: services answer no such packets at 10.96.0.10'],
    ['198.18.0.1 node/n2:8080', 'deny v4 from nets 198.18.0.0/15'],
    ['node/n1 shop/db-0:5432', 'no rules are asked'],
    ['198.51.100.1 node/n2:22', 'failsafe port'],
    ['198.51.100.1 node/n2:23', 'verdict: deny'],
    ['--protocol udp node/n2 198.51.100.1:53', 'failsafe port'],
    ['node/n2 198.51.100.1:80', 'deny     -   -     4071350740  nothing decides'],
    ['shop/db-0 10.1.0.3:5432', 'no rules are asked'],
    ['--protocol icmp/8/0 shop/web shop/db-0', 'ICMP 8/0 10.1.0.2 (shop/web on n1) > 10.1.0.3 (shop/db-0 on n1)\n  verdict: deny'],
    ['--protocol icmp/0/7 shop/web shop/db-0', 'ICMP 0/7 10.1.0.2 (shop/web on n1) > 10.1.0.3 (shop/db-0 on n1)\n  verdict: deny'],
    ['--protocol udp --source-port 53 shop/web 8.8.8.8:53', 'UDP 10.1.0.2:53 (shop/web on n1) > 8.8.8.8:53\n  verdict: allow'],
    ['--entry n2 203.0.113.9 10.96.0.10:5432', '10.96.0.10:5432/TCP, at n2, for outside: 2 backends'],
  ])('%s', async (line, wanted) => {
    expect(await asked(line)).toContain(wanted)
  })

  test('a candidate may be anything that is read', async () => {
    const { text } = await run(['--with', join(here, 'candidates/drop.yaml'), 'shop/web', '192.0.2.1:8080'])
    expect(text).toContain('with the candidate: allow -> deny')
    expect(text).toMatch(/ingress Node n1 on n1 +- +deny +- +- +- +defaultEndpointToHostAction: Drop/)
  })

  test.each([
    ['shop/web 203.0.113.53:99', 'with the candidate: no change', 'what a pod sends to another port goes to the host'],
    ['--protocol icmp shop/web 203.0.113.53', 'with the candidate: no change', 'and so does its ping'],
    ['--protocol udp shop/web 203.0.113.53:53', 'with the candidate: allow -> refuse', 'the port is the service’s'],
    ['--entry n2 198.51.100.1 203.0.113.53:99', 'with the candidate: allow -> drop', 'what comes from the network would go back'],
    ['shop/web 10.96.0.53:99', 'with the candidate: allow -> drop', 'a cluster address has no host'],
  ])('a service’s address that may be a host’s: %s: %s: %s', async (line, wanted) => {
    const { text } = await run(['--with', join(here, 'candidates/foreign.yaml'), ...line.split(' ')])
    expect(text).toContain(wanted)
  })

  test('problems of the manifests are warnings beside the answer', async () => {
    const { warnings } = await run(['--packet', 'tcp 10.1.0.2:1234 > 10.1.0.3:5432'])
    expect(warnings).toBe('broken.yaml:4: NetworkPolicy shop/misspelt: spec.selctor: is not a field that is understood here\n')
  })

  test.each([
    ['shop/nobody shop/web:80', 'shop/nobody: there is no such pod'],
    ['shop/web svc/shop/none:80', 'svc/shop/none:80: there is no such service'],
    ['shop/web svc/shop/db:99', 'the service has no such tcp port: 5432/TCP (sql)'],
    ['shop/web shop/db-0:dns', 'shop/db-0:dns: the pod has no tcp port of this name'],
    ['shop/web shop/db-0', 'shop/db-0: tcp needs a port: shop/db-0:PORT'],
    ['fd00:1::2 10.1.0.3:80', 'have no address of the same family'],
    ['--entry n3 203.0.113.9 10.1.0.3:80', '--entry: there is no node n3'],
    ['node/n3 10.1.0.3:80', 'node/n3: there is no such node'],
  ])('%s is refused', async (line, reason) => {
    await expect(run(line.split(' '))).rejects.toThrow(reason)
  })

  test('tables that say something else are a defect, reported loudly', async () => {
    const worlds = await loadClusters(join(here, 'cluster'), undefined)
    const [packet] = packetsOf(worlds.now, readFlow('tcp shop/db-0 > shop/db-1:5432'))
    if (packet === undefined) throw new Error('no packet')
    worlds.now.view('n2').policy.tables.rows.clear()
    const { disagreements, ...explanation } = explain(worlds, packet, { entry: undefined, device: undefined })
    expect(disagreements).toEqual([
      'ingress of Pod/shop/db-1 at node n2: policies say deny (GlobalNetworkPolicy/security.no-old ingress 0), their compiled tables allow (no rule)',
    ])
    expect(explanationText({ ...explanation, disagreements })).toContain('DEFECT: ingress of Pod/shop/db-1')
  })

  test('as JSON', async () => {
    const { text } = await run(['--json', 'shop/db-0', 'shop/web:80'])
    const record: unknown = JSON.parse(text)
    expect(isObject(record) && Array.isArray(record['flows']) ? record['flows'][0] : record).toMatchInlineSnapshot(`
      {
        "candidate": null,
        "disagreements": [],
        "from": {
          "address": "10.1.0.3",
          "node": "n1",
          "owner": "shop/db-0",
          "port": 50000,
        },
        "icmp": null,
        "now": {
          "outcomes": [
            {
              "checks": [
                {
                  "direction": "egress",
                  "disagreement": null,
                  "endpoint": "Pod/shop/db-0",
                  "node": "n1",
                  "stage": "pod",
                  "steps": [
                    {
                      "by": "Profile/kns.shop",
                      "id": null,
                      "outcome": "allow",
                      "rule": 0,
                      "text": "allow",
                      "tier": null,
                    },
                  ],
                  "verdict": "allow",
                },
                {
                  "direction": "ingress",
                  "disagreement": null,
                  "endpoint": "Pod/shop/web",
                  "node": "n1",
                  "stage": "pod",
                  "steps": [
                    {
                      "by": "Profile/kns.shop",
                      "id": null,
                      "outcome": "allow",
                      "rule": 0,
                      "text": "allow",
                      "tier": null,
                    },
                  ],
                  "verdict": "allow",
                },
              ],
              "reason": null,
              "seenAs": null,
              "to": [
                {
                  "address": "10.1.0.2",
                  "node": "n1",
                  "owner": "shop/web",
                  "port": 80,
                },
              ],
              "verdict": "allow",
            },
          ],
          "translations": [],
          "verdict": "allow",
        },
        "proto": "TCP",
        "staged": null,
        "to": {
          "address": "10.1.0.2",
          "node": "n1",
          "owner": "shop/web",
          "port": 80,
        },
      }
    `)
  })
})
