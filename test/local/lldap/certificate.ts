import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { BerWriter } from 'ldapts';

/** A certificate of its own making for 127.0.0.1 and localhost, which is also the authority to trust. */
export function selfSigned(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const body = sequence(0x30, [
    sequence(0xa0, [integer(Buffer.from([2]))]),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    ECDSA_WITH_SHA256,
    NAME,
    sequence(0x30, [utcTime(-1), utcTime(365)]),
    NAME,
    publicKey.export({ type: 'spki', format: 'der' }),
    sequence(0xa3, [sequence(0x30, [authority(), alternativeNames()])]),
  ]);
  const signature = Buffer.concat([Buffer.from([0]), sign('sha256', body, privateKey)]);
  const der = sequence(0x30, [body, ECDSA_WITH_SHA256, primitive(0x03, signature)]);
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
  };
}

const ECDSA_WITH_SHA256 = sequence(0x30, [oid('1.2.840.10045.4.3.2')]);
const NAME = sequence(0x30, [sequence(0x31, [sequence(0x30, [oid('2.5.4.3'), primitive(0x0c, Buffer.from('lldap stand-in'))])])]);

function authority(): Buffer {
  const isAuthority = sequence(0x30, [primitive(0x01, Buffer.from([0xff]))]);
  return sequence(0x30, [oid('2.5.29.19'), primitive(0x01, Buffer.from([0xff])), primitive(0x04, isAuthority)]);
}

function alternativeNames(): Buffer {
  const names = sequence(0x30, [primitive(0x82, Buffer.from('localhost')), primitive(0x87, Buffer.from([127, 0, 0, 1]))]);
  return sequence(0x30, [oid('2.5.29.17'), primitive(0x04, names)]);
}

function utcTime(days: number): Buffer {
  const text = new Date(Date.now() + days * 86_400_000).toISOString().replace(/[-:T]/g, '').slice(2, 14);
  return primitive(0x17, Buffer.from(`${text}Z`));
}

function integer(bytes: Buffer): Buffer {
  return primitive(0x02, bytes);
}

function sequence(tag: number, parts: Buffer[]): Buffer {
  return primitive(tag, Buffer.concat(parts));
}

function primitive(tag: number, content: Buffer): Buffer {
  const writer = new BerWriter();
  writer.writeBuffer(content, tag);
  return writer.buffer;
}

function oid(name: string): Buffer {
  const writer = new BerWriter();
  writer.writeOID(name);
  return writer.buffer;
}
