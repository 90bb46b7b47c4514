/**
 * Tokens that must be refused, by what is wrong with them. All but those with a wrong signature are signed with a key
 * of the provider, so that only one thing is wrong.
 */
import { createPublicKey, createSign } from 'node:crypto';
import { CompactSign, exportJWK, exportSPKI, generateKeyPair, SignJWT, type JWK } from 'jose';
import { maxTokenChars } from '../../src/oidc/verifier.ts';
import { audience, makeKey, type SigningKey, type TestProvider } from '../support/provider.ts';

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Keys of the provider besides the first one. */
export async function makeOtherKeys(): Promise<Record<'ec' | 'encryption' | 'signature', JWK>> {
  return {
    ec: await makeKey('ec', 'ES256'),
    encryption: await makeKey('encryption', 'RSA-OAEP', { use: 'enc' }),
    signature: await makeKey('rs512', 'RS512'),
  };
}

export async function wrongTokens(provider: TestProvider): Promise<Record<string, string>> {
  const [key, ec] = provider.keys;
  if (key === undefined || ec === undefined) throw new Error('the provider has too few keys');
  const now = Math.floor(Date.now() / 1_000);
  const good = await provider.sign();
  const [header = '', payload = '', signature = ''] = good.split('.');
  const sign = (claims: object, headers: object = {}) => provider.sign({ ...claims }, headers);
  const without = (claim: string) => provider.sign({ [claim]: undefined });
  const publicKey = createPublicKey({ key, format: 'jwk' });
  const attacker = await makeKey(key.kid);
  const withSecret = (secret: Uint8Array) =>
    new SignJWT(provider.claims())
      .setProtectedHeader({ alg: 'HS256', kid: key.kid, typ: 'at+jwt' })
      .sign(secret);
  const jwkOf = async (one: SigningKey): Promise<JWK> => {
    const { kty, n, e } = one;
    return { kty: kty ?? '', n: n ?? '', e: e ?? '' };
  };
  /** Signed by the provider, with this text as the payload. */
  const withPayload = (text: string) =>
    new CompactSign(Buffer.from(text))
      .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'at+jwt' })
      .sign(key);
  /** Signed by the provider's RSA key, with a header that libraries refuse to sign. */
  const signAnyway = (headers: object, digest: string) => {
    const input = `${encode(headers)}.${encode(provider.claims())}`;
    const made = createSign(digest)
      .update(input)
      .sign({ key, format: 'jwk' } as never);
    return `${input}.${made.toString('base64url')}`;
  };
  const secp = await generateKeyPair('ES384', { extractable: true });
  const es384 = { ...(await exportJWK(secp.privateKey)), kid: ec.kid, alg: 'ES384' };

  return {
    'another issuer': await sign({ iss: 'https://evil.example' }),
    'an issuer with a slash': await sign({ iss: `${provider.issuer}/` }),
    'several issuers': await sign({ iss: [provider.issuer] as never }),
    'no issuer': await without('iss'),
    'another audience': await sign({ aud: 'https://other.example' }),
    'a longer audience': await sign({ aud: `${audience}/more` }),
    'other audiences': await sign({ aud: ['https://other.example', 'app'] }),
    'no audience': await without('aud'),
    'an empty list of audiences': await sign({ aud: [] }),
    'no type': await sign({}, { typ: undefined }),
    'the type JWT': await sign({}, { typ: 'JWT' }),
    'the type of a logout token': await sign({}, { typ: 'logout+jwt' }),
    'a type that is no text': await sign({}, { typ: 1 }),
    'the algorithm none': `${encode({ alg: 'none', kid: key.kid, typ: 'at+jwt' })}.${payload}.`,
    'the algorithm none with a signature': `${encode({ alg: 'none', kid: key.kid, typ: 'at+jwt' })}.${payload}.${signature}`,
    'the algorithm NONE': `${encode({ alg: 'NONE', kid: key.kid, typ: 'at+jwt' })}.${payload}.`,
    'HMAC with the public key in PEM': await withSecret(
      Buffer.from(publicKey.export({ type: 'spki', format: 'pem' })),
    ),
    'HMAC with the public key in DER': await withSecret(
      publicKey.export({ type: 'spki', format: 'der' }),
    ),
    'HMAC with the public key as JWK': await withSecret(
      Buffer.from(JSON.stringify(await jwkOf(key))),
    ),
    'an algorithm of another kind of key': await provider.sign(
      {},
      { alg: 'ES256', kid: key.kid },
      ec,
    ),
    'another algorithm than the one of the key': signAnyway(
      { alg: 'RS512', kid: key.kid, typ: 'at+jwt' },
      'RSA-SHA512',
    ),
    'SHA-1': signAnyway({ alg: 'RS1', kid: key.kid, typ: 'at+jwt' }, 'RSA-SHA1'),
    'another curve': await provider.sign({}, { alg: 'ES384', kid: ec.kid }, es384),
    expired: await sign({ exp: now - 1 }),
    'expired long ago': await sign({ iat: now - 1_000, exp: now - 900 }),
    'an expiry that is no number': await sign({ exp: String(now + 60) as never }),
    'an endless expiry': await withPayload(
      JSON.stringify({ ...provider.claims(), exp: 0 }).replace('"exp":0', '"exp":1e999'),
    ),
    'no expiry': await without('exp'),
    'not valid yet': await sign({ nbf: now + 60 }),
    'issued in the future': await sign({ iat: now + 60 }),
    'issued before 1970': await sign({ iat: -1 }),
    'issued before the universe': await sign({ iat: -1e300 }),
    'no time of issue': await without('iat'),
    'no subject': await without('sub'),
    'a subject that is no text': await sign({ sub: 7 as never }),
    'an empty subject': await sign({ sub: '' }),
    'a subject with a control character': await sign({ sub: 'al\u0000ice' }),
    'a subject that is too long': await sign({ sub: 'a'.repeat(201) }),
    'no client': await without('client_id'),
    'no id of the token': await without('jti'),
    'a binding to a certificate': await sign({ cnf: { 'x5t#S256': 'a'.repeat(43) } }),
    'a binding to a key of DPoP': await sign({ cnf: { jkt: 'a'.repeat(43) } }),
    'an unknown key': await sign({}, { kid: 'unknown' }),
    'no key': await sign({}, { kid: undefined }),
    'a key id that is no text': await sign({}, { kid: 1 }),
    'a key for encryption': await sign({}, { kid: 'encryption' }),
    'a key of the attacker at its address': await provider.sign(
      {},
      { kid: 'evil', jku: `${provider.issuer}/evil-jku`, x5u: `${provider.issuer}/evil-x5u` },
      attacker,
    ),
    'a key of the attacker in the token': await provider.sign(
      {},
      { jwk: await jwkOf(attacker) },
      attacker,
    ),
    'the signature of another key': await provider.sign({}, {}, attacker),
    'a critical header': signAnyway(
      { alg: 'RS256', kid: key.kid, typ: 'at+jwt', crit: ['exp'], exp: 1 },
      'RSA-SHA256',
    ),
    'a payload that is not encoded': signAnyway(
      { alg: 'RS256', kid: key.kid, typ: 'at+jwt', crit: ['b64'], b64: false },
      'RSA-SHA256',
    ),
    'another payload': `${header}.${encode({ ...provider.claims(), sub: 'admin' })}.${signature}`,
    'another header': `${encode({ alg: 'RS256', kid: key.kid, typ: 'at+jwt', x: 1 })}.${payload}.${signature}`,
    'no signature': `${header}.${payload}.`,
    'a shorter signature': good.slice(0, -4),
    'a longer signature': `${good}AAAA`,
    'other last bits': good.slice(0, -1) + sibling(good.at(-1)),
    'a character of plain base64': `${header}.${payload}.${signature.replace(/./, '+')}`,
    'padding at its end': `${good}==`,
    'a part twice': `${good}.${signature}`,
    'two parts': `${header}.${payload}`,
    'five parts, like an encrypted token': `${header}.${payload}.${signature}.${payload}.${signature}`,
    'a header that is no JSON': `${Buffer.from('alg').toString('base64url')}.${payload}.${signature}`,
    'a header that is a list': `${encode([1])}.${payload}.${signature}`,
    'a payload that is no JSON': await withPayload('sub=alice'),
    'a payload that is a list': await withPayload('[]'),
    'a payload that is null': await withPayload('null'),
    'too many characters': await sign({ more: 'a'.repeat(maxTokenChars * 0.73) }),
    'the public key as the token': (await exportSPKI(publicKey))
      .replaceAll(/\s/g, '')
      .slice(0, 500),
  };
}

/** Another character of base64url that differs only in bits that the decoder of a whole signature ignores. */
function sibling(character = ''): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  return alphabet.charAt(alphabet.indexOf(character) ^ 1);
}
