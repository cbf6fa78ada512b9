// SPDX-License-Identifier: Apache-2.0
/** The certificates of a cluster that lives as long as a test: an authority, the API server's, what it shows to
 * kubelets. Layer: testkit. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command } from '../base/command.ts'

const CONFIG = `[req]
distinguished_name = subject
[subject]
[authority]
basicConstraints = critical,CA:TRUE
keyUsage = critical,keyCertSign,digitalSignature
[holder]
basicConstraints = CA:FALSE
keyUsage = digitalSignature,keyEncipherment
extendedKeyUsage = serverAuth,clientAuth
`

export interface Certificate {
  readonly certificate: string
  readonly key: string
}

export class Authority implements Certificate {
  readonly #folder: string

  private constructor(folder: string) {
    this.#folder = folder
  }

  /** A new one, its files in this folder. */
  static async make(folder: string): Promise<Authority> {
    writeFileSync(join(folder, 'openssl.cnf'), CONFIG)
    const authority = new Authority(folder)
    await authority.#request('authority', ['-extensions', 'authority', '-subj', '/CN=cluster-of-a-test'])
    return authority
  }

  get certificate(): string {
    return this.#path('authority').certificate
  }

  get key(): string {
    return this.#path('authority').key
  }

  /** Signs one for `subject` ("/O=GROUP/CN=NAME"), valid for these names ("IP:10.0.0.1", "DNS:localhost"). */
  async issue(name: string, subject: string, names: readonly string[]): Promise<Certificate> {
    const valid = names.length === 0 ? [] : ['-addext', `subjectAltName=${names.join(',')}`]
    const signed = ['-CA', this.certificate, '-CAkey', this.key, '-extensions', 'holder', '-subj', subject]
    return await this.#request(name, [...signed, ...valid])
  }

  async #request(name: string, flags: readonly string[]): Promise<Certificate> {
    const paths = this.#path(name)
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', paths.key]
    const config = ['-config', join(this.#folder, 'openssl.cnf')]
    await command('openssl', ['req', '-x509', ...config, '-days', '3650', ...key, ...flags, '-out', paths.certificate])
    return paths
  }

  #path(name: string): Certificate {
    return { certificate: join(this.#folder, `${name}.crt`), key: join(this.#folder, `${name}.key`) }
  }
}
