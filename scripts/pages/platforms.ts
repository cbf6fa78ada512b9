// SPDX-License-Identifier: Apache-2.0
/** docs/platforms: what the operator goes by on each platform, from the table of platforms. Layer: scripts. */
import { fields } from '#agent/config/schema.ts'
import { PROVIDERS } from '#lib/kube/schema/installation.ts'
import { PLATFORMS, type Platform, type Provider, type ProxyAction } from '#lib/render/providers.ts'
import { PROXY_COMMANDS } from '#operator/switch/proxy-command.ts'
import { marked } from './marked.ts'

/** Of each platform its page, and the title of it. */
const PAGES: Readonly<Record<Provider, readonly [file: string, title: string]>> = {
  Generic: ['generic.md', 'kubeadm and its like'],
  KOPS: ['kops.md', 'kOps'],
  OpenShift: ['openshift.md', 'OpenShift'],
  AKS: ['aks.md', 'AKS'],
  EKS: ['eks.md', 'EKS'],
  MKE: ['mke.md', 'MKE'],
  RKE2: ['rke2.md', 'RKE2'],
}

const PROXY_ACTIONS: Readonly<Record<ProxyAction, string>> = {
  'node-selector': 'by a node selector of its DaemonSet that no node has',
  'platform-operator': "by the platform's own network operator",
  command: 'by a command of the platform',
  keep: 'not at all; its rules stay',
}

/** Every field of a row, so that none is left out. */
const FACTS: { readonly [name in keyof Platform]: readonly [title: string, text: (platform: Platform) => string] } = {
  cni: ['pods get their network from (`cni.type`)', ({ cni }) => `\`${cni}\``],
  binDir: ['folder of plugins (`cni.binDir`)', ({ binDir }) => `\`${binDir}\``],
  confDir: ['folder of network configurations (`cni.confDir`)', ({ confDir }) => `\`${confDir}\``],
  vxlanPort: ['UDP port of the tunnel', ({ vxlanPort }) => String(vxlanPort ?? fields.tunnelPort.fallback)],
  vxlanVni: ['network number (VNI) of the tunnel', ({ vxlanVni }) => String(vxlanVni ?? fields.tunnelVni.fallback)],
  healthPort: ["port of the agents' health", ({ healthPort }) => String(healthPort)],
  needsScc: ['SecurityContextConstraints', ({ needsScc }) => (needsScc ? 'one for each account of ours' : 'none')],
  proxy: ['kube-proxy is stopped', ({ proxy }) => PROXY_ACTIONS[proxy]],
  kubeProxy: [
    'kube-proxy is looked for as',
    ({ kubeProxy: { namespace, daemonSet, configMap } }) =>
      `DaemonSet \`${namespace}/${daemonSet}\`, with its settings in config map \`${configMap}\``,
  ],
  hidesKubeProxy: [
    'kube-proxy runs',
    ({ hidesKubeProxy }) => (hidesKubeProxy ? 'outside pods: agents tell whether it does' : 'in pods, if it does'),
  ],
  nameserver: [
    "name server beside the node's own, for the operator",
    ({ nameserver }) => (nameserver === undefined ? 'none' : `\`${nameserver}\``),
  ],
}

/** What differs most. */
const OVERVIEW = ['vxlanPort', 'vxlanVni', 'healthPort', 'proxy', 'nameserver'] as const satisfies readonly (keyof Platform)[]

/** By path. */
export const PLATFORM_PAGES: ReadonlyMap<string, () => string> = new Map<string, () => string>([
  ['docs/platforms/README.md', overview],
  ...PROVIDERS.map((provider) => {
    const path = `docs/platforms/${PAGES[provider][0]}`
    return [path, (): string => marked(path, 'facts', factsOf(provider))] as const
  }),
])

function overview(): string {
  const head = ['platform', '`spec.provider`', ...OVERVIEW.map((name) => FACTS[name][0])]
  const rows = PROVIDERS.map((provider) => {
    const [file, title] = PAGES[provider]
    return [`[${title}](${file})`, `\`${provider}\``, ...OVERVIEW.map((name) => FACTS[name][1](PLATFORMS[provider]))]
  })
  return marked('docs/platforms/README.md', 'facts', `\n${[head, head.map(() => '---'), ...rows].map(row).join('\n')}\n\n`)
}

function factsOf(provider: Provider): string {
  const { stop, start } = PROXY_COMMANDS[provider]
  const rows = [
    ...Object.values(FACTS).map(([title, text]) => [title, text(PLATFORMS[provider])]),
    ['kube-proxy by hand: stop it', asCode(stop)],
    ['kube-proxy by hand: start it again', asCode(start)],
  ]
  return `\n${[['of this platform', `as \`spec.provider: ${provider}\` has it`], ['---', '---'], ...rows].map(row).join('\n')}\n\n`
}

/** What is typed as it stands. */
function asCode(text: string): string {
  return text.startsWith('kubectl ') ? `\`${text}\`` : text
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`
}
