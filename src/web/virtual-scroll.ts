/**
 * Scrolls through rows that together are higher than an element can be: browsers limit it to 18 to 33 million pixels.
 * Above `maxTrackPx`, the scrollbar is a scale of the rows. Small movements still move the rows by as many pixels as
 * the scrollbar.
 */

const maxTrackPx = 4_000_000;

export class VirtualScroll {
  readonly #viewport: HTMLElement;
  readonly #spacer: HTMLElement;
  #heightPx = 0;
  #scrollTopPx = 0;
  /** How far the rows are from where they would be if the element had its full height. */
  #offsetPx = 0;

  /** `spacer` is the only content of `viewport` below its sticky head. */
  constructor(viewport: HTMLElement, spacer: HTMLElement, onScroll: () => void) {
    this.#viewport = viewport;
    this.#spacer = spacer;
    viewport.addEventListener('scroll', () => {
      this.#scrolled();
      onScroll();
    });
    viewport.addEventListener('scrollend', () => {
      if (!this.#isScaled) return;
      this.#settle();
      onScroll();
    });
  }

  /** How many pixels of the rows are above the visible ones. */
  get topPx(): number {
    return this.#scrollTopPx + this.#offsetPx;
  }

  /** Scrolls to this distance from the top of the rows. */
  set topPx(px: number) {
    this.#offsetPx = Math.max(0, Math.min(px, this.#maxTopPx)) - this.#scrollTopPx;
    this.#settle();
  }

  /** The height of the visible rows. */
  get viewPx(): number {
    return this.#viewport.clientHeight - this.#spacer.offsetTop;
  }

  /** Where to draw a row that is this far from the top of the rows, as a distance from the top of the spacer. */
  place(px: number): number {
    return px - this.#offsetPx;
  }

  /** Sets the height of all rows together. */
  set heightPx(px: number) {
    if (px === this.#heightPx) return;
    const top = this.topPx;
    this.#heightPx = px;
    this.#spacer.style.height = `${Math.min(px, maxTrackPx)}px`;
    const isAtEnd = this.#scrollTopPx >= this.#maxScrollTopPx - this.viewPx;
    if (top > this.#maxTopPx || (this.#isScaled && isAtEnd)) this.topPx = top;
  }

  get #isScaled(): boolean {
    return this.#heightPx > maxTrackPx;
  }

  get #maxTopPx(): number {
    return Math.max(0, this.#heightPx - this.viewPx);
  }

  get #maxScrollTopPx(): number {
    return Math.max(0, Math.min(this.#heightPx, maxTrackPx) - this.viewPx);
  }

  #scrolled(): void {
    const before = this.#scrollTopPx;
    this.#scrollTopPx = this.#viewport.scrollTop;
    if (!this.#isScaled) {
      this.#offsetPx = 0;
      return;
    }
    const isJump = Math.abs(this.#scrollTopPx - before) > 4 * this.viewPx;
    if (isJump) this.#offsetPx = this.#scaled(this.#scrollTopPx) - this.#scrollTopPx;
    const { topPx } = this;
    const isOutside = topPx < 0 || topPx > this.#maxTopPx;
    const isAtEnd = this.#scrollTopPx <= 0 || this.#scrollTopPx >= this.#maxScrollTopPx - 1;
    if (isOutside || isAtEnd) this.topPx = topPx;
  }

  /** Moves the scrollbar to where it belongs, without moving the rows. */
  #settle(): void {
    const top = this.topPx;
    const share = this.#maxTopPx === 0 ? 0 : top / this.#maxTopPx;
    this.#viewport.scrollTop = this.#isScaled ? share * this.#maxScrollTopPx : top;
    this.#scrollTopPx = this.#viewport.scrollTop;
    this.#offsetPx = this.#isScaled ? top - this.#scrollTopPx : 0;
  }

  #scaled(scrollTopPx: number): number {
    return (scrollTopPx / this.#maxScrollTopPx) * this.#maxTopPx;
  }
}
