/**
 * What a printer puts on paper: a PDF, as pixels.
 */
import { spawnSync } from 'node:child_process';
import jsQR from 'jsqr';

const dotsPerInch = 150;
const dotsPerMm = dotsPerInch / 25.4;

/** In millimeters, from the upper left corner. */
interface Area {
  x: number;
  y: number;
  width: number;
  height: number;
}

export class Paper {
  readonly widthMm: number;
  readonly heightMm: number;
  readonly #width: number;
  /** Three bytes a pixel. */
  readonly #pixels: Buffer;

  constructor(width: number, height: number, pixels: Buffer) {
    this.#width = width;
    this.#pixels = pixels;
    this.widthMm = width / dotsPerMm;
    this.heightMm = height / dotsPerMm;
  }

  /** The text of the QR code in a rectangle; undefined if there is none. */
  qrCode(area: Area): string | undefined {
    const dots = (mm: number) => Math.round(mm * dotsPerMm);
    const [left, top] = [dots(area.x), dots(area.y)];
    const [columns, rows] = [dots(area.width), dots(area.height)];
    const rgba = new Uint8ClampedArray(columns * rows * 4).fill(255);
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const from = ((top + row) * this.#width + left + column) * 3;
        rgba.set(this.#pixels.subarray(from, from + 3), (row * columns + column) * 4);
      }
    }
    return jsQR.default(rgba, columns, rows)?.data;
  }

  /** Whether nothing is on it. */
  get isBlank(): boolean {
    return this.#pixels.every((byte) => byte === 255);
  }
}

/** The pages of a PDF. */
export function pagesOf(pdf: Buffer): Paper[] {
  const { stdout, stderr } = spawnSync('pdftoppm', ['-r', String(dotsPerInch), '-'], {
    input: pdf,
    maxBuffer: 2 ** 30,
  });
  const pages: Paper[] = [];
  for (let at = 0; at < stdout.length;) {
    const head = /^P6\n(\d+) (\d+)\n255\n/.exec(stdout.toString('latin1', at, at + 40));
    if (head === null) throw new Error(`pdftoppm: ${stderr.toString()}`);
    const [whole, width, height] = [head[0].length, Number(head[1]), Number(head[2])];
    at += whole;
    const end = at + width * height * 3;
    pages.push(new Paper(width, height, stdout.subarray(at, end)));
    at = end;
  }
  return pages;
}
