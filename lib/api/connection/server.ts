// SPDX-License-Identifier: Apache-2.0
/** What is needed to talk to an API server: where it is, how it proves itself, our credentials. Layer: lib/api. */

export interface ApiServer extends Partial<Disposable> {
  readonly protocol: 'https:' | 'http:'
  /** a name, which is resolved again for each connection, or an address without brackets */
  readonly host: string
  readonly port: number
  /** in front of every path, without a slash at its end: "/k8s/clusters/c-1" */
  readonly prefix: string
  /** the name that its certificate must have, where that is not the host */
  readonly servername?: string | undefined
  /** why it is asked at the address of its service, which a service proxy has to serve; undefined: it is not */
  readonly byService?: string | undefined
  /** asked for each connection: files change while we run */
  readonly tls: () => Promise<TlsMaterial>
  /** asked for each request: tokens change while we run */
  readonly headers: () => Promise<Readonly<Record<string, string>>>
  /** Reads all of this again, before each connection, and when the server has refused what it gave (`refused`): then
   * nothing of that is remembered. Rejects with what cannot be read; then everything is as it was. Without it there
   * is nothing that would be another by then. */
  readonly renew?: (refused: boolean) => Promise<void>
}

/** One that is another after {@link ApiServer.renew}: each question goes to that of now. */
export function changingServer(now: () => ApiServer, renew: (refused: boolean) => Promise<void>): ApiServer {
  return {
    get protocol() {
      return now().protocol
    },
    get host() {
      return now().host
    },
    get port() {
      return now().port
    },
    get prefix() {
      return now().prefix
    },
    get servername() {
      return now().servername
    },
    get byService() {
      return now().byService
    },
    tls: () => now().tls(),
    headers: () => now().headers(),
    renew,
  }
}

/** PEM texts. There is no way not to verify the server. */
export interface TlsMaterial {
  /** the machine's own authorities when there are none */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

/** "https://10.0.0.1:6443" */
export function originOf({ protocol, host, port }: Pick<ApiServer, 'protocol' | 'host' | 'port'>): string {
  return `${protocol}//${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** The same for a server whose connections are to it. */
export function placeOf(server: ApiServer): string {
  return `${originOf(server)} ${server.servername ?? ''}`
}
