/**
 * Scrolls the page through a long list: `npm run bench:page [plants]`. It prints the heap of the page on the way and
 * the most work in a frame. The heap grows only by the rows, and no frame may have more than 50 ms of work.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { chromium, type CDPSession, type Page } from 'playwright-core';
import { schemas } from './schemas.ts';
import { makeTokens, SqliteStore } from './seed.ts';
import { temporaryFolder } from './workspace.ts';

const executable = fileURLToPath(new URL('../bin/plant-store.js', import.meta.url));
const plants = Number(process.argv[2] ?? 100_000);
const reports = 10;
const jumps = 200;
const maxFrameMs = 50;

const folder = temporaryFolder();
const population = { plants, users: 1 };
const { tokens } = makeTokens(folder, 'page', population);
const store = new SqliteStore(join(folder, 'page.db'), schemas.service, population);
store.fill(tokens);
const service = spawn(
  process.execPath,
  [executable, 'serve', '--port', '0', '--database', store.address, '--log-level', 'silent'],
  { stdio: ['ignore', 'pipe', 'inherit'] },
);
try {
  await measure(`${await addressOf(service.stdout)}/#token=${tokens[0]}`);
} finally {
  service.kill();
  await once(service, 'close');
}

async function measure(link: string): Promise<void> {
  const browser = await chromium.launch({
    executablePath: process.env['PLANT_STORE_TEST_BROWSER'] ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
  const page = await browser.newPage();
  await page.goto(link);
  await page.locator('#rows .row').first().waitFor();
  const debug = await page.context().newCDPSession(page);
  await watchFrames(page);
  console.log('| rows read | heap, MiB | elements |\n|---:|---:|---:|');
  await report(page, debug);
  for (let part = 1; part <= reports; part++) {
    await scrollTo(page, Math.floor((plants / reports) * part));
    await report(page, debug);
  }
  await jumpAround(page);
  console.log(`\nAfter ${jumps} jumps:`);
  await report(page, debug);
  const { longestMs, over } = (await page.evaluate('window.frames_')) as Frames;
  console.log(
    `\nLongest work in a frame: ${longestMs.toFixed(0)} ms; frames over ${maxFrameMs} ms: ${over}`,
  );
  if (over > 0) process.exitCode = 1;
  await browser.close();
}

interface Frames {
  longestMs: number;
  over: number;
}

/**
 * Measures the work of the frames that took long, which are those that the browser reports: its scripts, its layout
 * and its painting. The rest of a frame is time in which it waited for a core.
 */
async function watchFrames(page: Page): Promise<void> {
  await page.evaluate(`
    window.frames_ = { longestMs: 0, over: 0 };
    new PerformanceObserver((list) => {
      for (const { startTime, duration, styleAndLayoutStart, scripts } of list.getEntries()) {
        const layoutMs = styleAndLayoutStart === 0 ? 0 : startTime + duration - styleAndLayoutStart;
        const workMs = scripts.reduce((sum, script) => sum + script.duration, layoutMs);
        frames_.longestMs = Math.max(frames_.longestMs, workMs);
        if (workMs > ${maxFrameMs}) frames_.over++;
      }
    }).observe({ type: 'long-animation-frame' });`);
}

/** Scrolls to the end of the known rows in each frame, until this row is known. */
async function scrollTo(page: Page, row: number): Promise<void> {
  await page.evaluate(`new Promise((done) => {
    const grid = document.querySelector('#grid');
    const step = () => {
      const last = document.querySelector('#rows .row:last-child');
      if (Number(last?.ariaRowIndex ?? 0) > ${row}) return done();
      grid.scrollTop = grid.scrollHeight;
      requestAnimationFrame(step);
    };
    step();
  })`);
}

/** Moves the scrollbar to places all over the list. */
async function jumpAround(page: Page): Promise<void> {
  await page.evaluate(`(async () => {
    const grid = document.querySelector('#grid');
    const frame = () => new Promise(requestAnimationFrame);
    for (let jump = 0; jump < ${jumps}; jump++) {
      grid.scrollTop = grid.scrollHeight * ((jump * 0.618) % 1);
      await frame();
    }
  })()`);
}

async function report(page: Page, debug: CDPSession): Promise<void> {
  await debug.send('HeapProfiler.collectGarbage');
  const { usedSize } = await debug.send('Runtime.getHeapUsage');
  const count = await page.locator('#store-count').innerText();
  const elements = await page.evaluate(`document.querySelectorAll('*').length`);
  console.log(`| ${count} | ${(usedSize / 2 ** 20).toFixed(1)} | ${String(elements)} |`);
}

async function addressOf(stdout: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface({ input: stdout })) {
    const [, address] = /listens on (\S+)/.exec(line) ?? [];
    if (address !== undefined) return address;
  }
  throw new Error('The service ended.');
}
