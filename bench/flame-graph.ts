/**
 * Draws a profile as a flame graph (brendangregg.com/flamegraphs.html), as SVG: a frame is as wide as its share of the
 * busy time, and stands on the function that called it. A browser shows the name and the share of a frame below the mouse.
 */

/** The fields of a .cpuprofile that are read here. Times are in microseconds. */
export interface Profile {
  nodes: { id: number; callFrame: CallFrame; children?: number[] }[];
  samples: number[];
  timeDeltas: number[];
}

export interface CallFrame {
  functionName: string;
  url: string;
  /** Counted from 0. */
  lineNumber: number;
}

/** V8's name for the time in which a thread waits. */
export const idleName = '(idle)';

const width = 1_200;
const rowHeight = 18;
const titleHeight = 34;
const charWidth = 6.5;
/** Narrower frames are left out: they would be thinner than a line. */
const minShare = 0.003;

/** One function, as one stack of callers called it. Calls by the same stack are one frame. */
interface Frame {
  name: string;
  us: number;
  callees: Map<string, Frame>;
}

/** Returns the same bytes for the same profile. `nameOf` names a function; those with the same name are one. */
export function flameGraph(
  title: string,
  profile: Profile,
  nameOf: (frame: CallFrame) => string,
): string {
  const root = framesOf(profile, nameOf);
  const rows: string[] = [];
  let depth = 0;
  const draw = (frame: Frame, x: number, level: number) => {
    if (frame.us < minShare * root.us) return;
    depth = Math.max(depth, level);
    rows.push(rectangle(frame, x, level, frame.us / root.us));
    let left = x;
    for (const callee of frame.callees.values()) {
      draw(callee, left, level + 1);
      left += (width * callee.us) / root.us;
    }
  };
  draw(root, 0, 0);
  const height = titleHeight + (depth + 1) * rowHeight;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="11" role="img" aria-label="${escape(title)}">`,
    `<title>${escape(title)}</title>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="8" y="22" font-size="15" fill="#1f2328">${escape(title)}</text>`,
    `<g transform="translate(0 ${height})">`,
    ...rows,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

/** The busy time by stack. */
function framesOf({ nodes, samples, timeDeltas }: Profile, nameOf: (frame: CallFrame) => string) {
  const [top] = nodes;
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const selfUs = new Map<number, number>();
  for (const [at, id] of samples.entries()) {
    selfUs.set(id, (selfUs.get(id) ?? 0) + (timeDeltas[at + 1] ?? 0));
  }
  const root: Frame = { name: 'all', us: 0, callees: new Map() };
  const add = (id: number, caller: Frame): number => {
    const node = byId.get(id);
    if (node === undefined || node.callFrame.functionName === idleName) return 0;
    const name = nameOf(node.callFrame);
    const frame = caller.callees.get(name) ?? { name, us: 0, callees: new Map() };
    caller.callees.set(name, frame);
    const ofCallees = (node.children ?? []).reduce((sum, callee) => sum + add(callee, frame), 0);
    const us = (selfUs.get(id) ?? 0) + ofCallees;
    frame.us += us;
    return us;
  };
  for (const id of top?.children ?? []) root.us += add(id, root);
  return root;
}

function rectangle({ name, us }: Frame, x: number, level: number, share: number): string {
  const frameWidth = width * share;
  const y = -(level + 1) * rowHeight;
  const room = Math.floor((frameWidth - 6) / charWidth);
  const label = room < 3 ? '' : name.length <= room ? name : `${name.slice(0, room - 1)}…`;
  const hint = `${name}: ${(100 * share).toFixed(1)} %, ${Math.round(us / 1_000)} ms`;
  const at = `x="${x.toFixed(1)}" y="${y}"`;
  return [
    `<g><title>${escape(hint)}</title>`,
    `<rect ${at} width="${frameWidth.toFixed(1)}" height="${rowHeight - 1}" fill="${colorOf(name)}"/>`,
    label && `<text x="${(x + 3).toFixed(1)}" y="${y + 13}">${escape(label)}</text>`,
    '</g>',
  ].join('');
}

/** Our own code is green, that of packages blue, of Node yellow, and native code gray. */
function colorOf(name: string): string {
  if (name.includes('src/')) return '#8fd19e';
  if (name.includes('node:')) return '#f2d28b';
  return name.includes(':') ? '#a5c8f0' : '#d0d7de';
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
}
