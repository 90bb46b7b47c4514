/**
 * QR codes: what a phone can open from paper or another screen.
 */

/** Draws a code in black on white, with the margin that scanners need. The encoder is loaded with the first one. */
export async function qrCode(text: string): Promise<SVGSVGElement> {
  const { encode } = await import('uqr');
  const { data, size } = encode(text, { ecc: 'M', border: 4 });
  const modules = data.flatMap((row, y) =>
    row.flatMap((isBlack, x) => (isBlack ? `M${x} ${y}h1v1h-1z` : [])),
  );
  const code = drawn('svg', { viewBox: `0 0 ${size} ${size}` });
  code.append(
    drawn('path', { d: `M0 0h${size}v${size}H0z`, fill: '#fff' }),
    drawn('path', { d: modules.join(''), fill: '#000' }),
  );
  return code;
}

function drawn<Name extends 'svg' | 'path'>(name: Name, attributes: Record<string, string>) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const each of Object.entries(attributes)) made.setAttribute(...each);
  return made;
}
