/** Which names the server answers to. */
import { BlockList, isIP } from 'node:net';

export interface HostCheckOptions {
  /** What the server is bound to. */
  readonly host: string;
  readonly apiKeys: readonly string[];
  /** Origins of pages that may ask; their hosts are names of this server too, as behind a proxy that passes them on. */
  readonly allowedOrigins: readonly string[];
}

/** Takes the Host header; undefined where there is none, which no browser leaves out. */
export type HostCheck = (host: string | undefined) => boolean;

const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8);
LOOPBACK.addAddress('::1', 'ipv6');

/**
 * A page can point its own name at this machine, and is then a page of this server for its browser: it may ask and read all. Where
 * neither keys nor other machines matter, the name is all that tells such a page from programs. Addresses are no names, and
 * nobody on the internet can own `localhost` or anything below it or below `internal`.
 */
export function createHostCheck({ host, apiKeys, allowedOrigins }: HostCheckOptions): HostCheck {
  if (apiKeys.length > 0 || !isLoopback(host)) return () => true;
  const allowed = new Set(allowedOrigins.flatMap((origin) => (URL.canParse(origin) ? [new URL(origin).hostname] : [])));
  return (authority) => {
    if (authority === undefined) return true;
    if (!URL.canParse(`http://${authority}`)) return false;
    const name = new URL(`http://${authority}`).hostname;
    return isIP(name.replace(/^\[|\]$/g, '')) > 0 || /(^|\.)localhost$|\.internal$/.test(name) || allowed.has(name);
  };
}

function isLoopback(host: string): boolean {
  const family = isIP(host);
  return family === 0 ? host === 'localhost' : LOOPBACK.check(host, family === 4 ? 'ipv4' : 'ipv6');
}
