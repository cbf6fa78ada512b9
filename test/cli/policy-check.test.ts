// SPDX-License-Identifier: Apache-2.0
/** policy check of manifests on disk. Layer: test. */
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { readArgs } from '../../cli/args.ts'
import { checkCommand } from '../../cli/policy/check.ts'
import type { CommandResult } from '../../cli/command-result.ts'

const here = fileURLToPath(new URL('.', import.meta.url))

/** `@` is the folder of the tests' manifests. */
async function run(line: string): Promise<CommandResult> {
  const order = readArgs(['policy', 'check', ...line.split(' ').map((word) => word.replace('@', here))])
  if (order.kind !== 'policy check') throw new Error('another command')
  const { text, warnings, exitCode } = await checkCommand(order)
  return { text, warnings: warnings.replaceAll(here, '@'), exitCode }
}

describe('policy check', () => {
  test('what it selects, and which flows change', async () => {
    const { text, exitCode } = await run(`@candidates/changes.yaml --resources @cluster --flows @candidates/flows.txt`)
    expect(exitCode).toBe(0)
    expect(text).toMatchInlineSnapshot(`
      "POLICY                               TIER      ORDER  INGRESS  EGRESS  OPTIONS  SELECTS
      GlobalNetworkPolicy security.no-old  security  last   1        -       -        shop/db-0, shop/db-1

      3 of 7 flows change
      FLOW                            FAMILY  BEFORE   AFTER  STAGED        BY
      tcp shop/web > svc/shop/db:sql  IPv4    depends  allow  deny -> deny  Profile/kns.shop egress 0, KubernetesNetworkPolicy/shop/db ingress 0
      tcp shop/web > shop/db-1:5432   IPv4    deny     allow  deny -> deny  Profile/kns.shop egress 0, KubernetesNetworkPolicy/shop/db ingress 0
      tcp shop/web > shop/db-1:5432   IPv6    deny     allow  deny -> deny  Profile/kns.shop egress 0, KubernetesNetworkPolicy/shop/db ingress 0
      "
    `)
  })

  test('what cannot be read: resource, field, reason; it closes what it selects', async () => {
    const { text, warnings, exitCode } = await run(`@candidates/bad.yaml --resources @cluster`)
    expect(exitCode).toBe(1)
    expect(`${warnings}${text}`).toMatchInlineSnapshot(`
      "@candidates/bad.yaml:7: NetworkPolicy shop/shut: spec.ingress[0].action: must be Allow or Deny or Pass or Log
      @candidates/bad.yaml: NetworkPolcy of example.com/v1 is nothing that Netplane reads
      in --resources: broken.yaml:4: NetworkPolicy shop/misspelt: spec.selctor: is not a field that is understood here
      POLICY                      TIER                   ORDER  INGRESS  EGRESS  OPTIONS  SELECTS
      NetworkPolicy shop/nowhere  missing (not defined)  last   -        0       -        shop/db-0, shop/db-1
      NetworkPolicy shop/shut     default                last   0        -       closed   shop/web
      "
    `)
  })

  test('a directory of the cluster itself, without any other', async () => {
    const { text, exitCode } = await run(`@cluster`)
    expect(exitCode).toBe(1)
    expect(text).toMatchInlineSnapshot(`
      "POLICY                                  TIER      ORDER  INGRESS  EGRESS  OPTIONS     SELECTS
      KubernetesNetworkPolicy shop/db         default   1000   1        -       -           shop/db-0, shop/db-1
      GlobalNetworkPolicy security.no-old     security  last   2        -       -           shop/db-0, shop/db-1
      StagedNetworkPolicy shop/default.later  default   last   -        1       staged Set  shop/web
      GlobalNetworkPolicy early               default   last   1        -       preDNAT     HostEndpoint n2-eth0
      GlobalNetworkPolicy hosts               default   last   1        -       -           HostEndpoint n2-eth0
      GlobalNetworkPolicy raw                 default   last   1        -       doNotTrack  HostEndpoint n2-eth0
      "
    `)
  })

  test('as JSON', async () => {
    const { text } = await run(`--json @candidates/bad.yaml --resources @cluster --flows @candidates/flows.txt`)
    expect(JSON.parse(text.replaceAll(here, '@'))).toMatchInlineSnapshot(`
      {
        "disagreements": [],
        "flows": [
          {
            "after": "depends",
            "before": "depends",
            "by": [
              "Tier/default egress end",
              "GlobalNetworkPolicy/security.no-old ingress 0",
            ],
            "changes": false,
            "destination": "10.96.0.10",
            "disagreements": [],
            "family": "IPv4",
            "flow": "tcp shop/web > svc/shop/db:sql",
            "source": "10.1.0.2",
            "stagedAfter": "deny",
            "stagedBefore": "deny",
          },
          {
            "after": "deny",
            "before": "deny",
            "by": [
              "Tier/default egress end",
              "GlobalNetworkPolicy/security.no-old ingress 0",
            ],
            "changes": false,
            "destination": "10.1.1.3",
            "disagreements": [],
            "family": "IPv4",
            "flow": "tcp shop/web > shop/db-1:5432",
            "source": "10.1.0.2",
            "stagedAfter": "deny",
            "stagedBefore": "deny",
          },
          {
            "after": "deny",
            "before": "deny",
            "by": [
              "Tier/default egress end",
              "GlobalNetworkPolicy/security.no-old ingress 0",
            ],
            "changes": false,
            "destination": "fd00:1:0:1::3",
            "disagreements": [],
            "family": "IPv6",
            "flow": "tcp shop/web > shop/db-1:5432",
            "source": "fd00:1::2",
            "stagedAfter": "deny",
            "stagedBefore": "deny",
          },
          {
            "after": "deny",
            "before": "deny",
            "by": [
              "Tier/default egress end",
              "GlobalNetworkPolicy/security.no-old ingress 0",
            ],
            "changes": false,
            "destination": "10.1.1.3",
            "disagreements": [],
            "family": "IPv4",
            "flow": "tcp shop/db-0 > shop/db-1:5432",
            "source": "10.1.0.3",
            "stagedAfter": "deny",
            "stagedBefore": "deny",
          },
          {
            "after": "deny",
            "before": "deny",
            "by": [
              "Tier/default egress end",
              "GlobalNetworkPolicy/security.no-old ingress 0",
            ],
            "changes": false,
            "destination": "fd00:1:0:1::3",
            "disagreements": [],
            "family": "IPv6",
            "flow": "tcp shop/db-0 > shop/db-1:5432",
            "source": "fd00:1::3",
            "stagedAfter": "deny",
            "stagedBefore": "deny",
          },
          {
            "after": "deny",
            "before": "deny",
            "by": [
              "Tier/default egress end",
              "Tier/default ingress end",
            ],
            "changes": false,
            "destination": "10.1.0.3",
            "disagreements": [],
            "family": "IPv4",
            "flow": "icmp shop/web > shop/db-0",
            "source": "10.1.0.2",
            "stagedAfter": "deny",
            "stagedBefore": "deny",
          },
          {
            "after": "deny",
            "before": "deny",
            "by": [
              "Tier/default egress end",
              "Tier/default ingress end",
            ],
            "changes": false,
            "destination": "fd00:1::3",
            "disagreements": [],
            "family": "IPv6",
            "flow": "icmp shop/web > shop/db-0",
            "source": "fd00:1::2",
            "stagedAfter": "deny",
            "stagedBefore": "deny",
          },
        ],
        "foreign": [
          "@candidates/bad.yaml: NetworkPolcy of example.com/v1",
        ],
        "policies": [
          {
            "closed": false,
            "egress": 0,
            "hostEndpoints": [],
            "ingress": null,
            "order": null,
            "pods": [
              "shop/db-0",
              "shop/db-1",
            ],
            "policy": "NetworkPolicy/shop/nowhere",
            "scope": "normal",
            "selector": "(app == "db" && netplane.io/namespace == "shop")",
            "staged": null,
            "tier": "missing",
            "tierExists": false,
          },
          {
            "closed": true,
            "egress": null,
            "hostEndpoints": [],
            "ingress": 0,
            "order": null,
            "pods": [
              "shop/web",
            ],
            "policy": "NetworkPolicy/shop/shut",
            "scope": "normal",
            "selector": "(app == "web" && netplane.io/namespace == "shop")",
            "staged": null,
            "tier": "default",
            "tierExists": true,
          },
        ],
        "problems": [
          {
            "field": "spec.ingress[0].action",
            "place": "@candidates/bad.yaml:7",
            "reason": "must be Allow or Deny or Pass or Log",
            "resource": "NetworkPolicy/shop/shut",
          },
        ],
        "resourceProblems": [
          {
            "field": "spec.selctor",
            "place": "broken.yaml:4",
            "reason": "is not a field that is understood here",
            "resource": "NetworkPolicy/shop/misspelt",
          },
        ],
      }
    `)
  })

  test('a line that is no flow is named', async () => {
    await expect(run(`@candidates/changes.yaml --resources @cluster --flows ${join(here, 'candidates/bad.yaml')}`)).rejects.toThrow(
      'bad.yaml:1: "apiVersion: netplane.io/v3": is no flow',
    )
    await expect(run('@candidates/none.yaml')).rejects.toThrow('none.yaml: does not exist')
  })
})
