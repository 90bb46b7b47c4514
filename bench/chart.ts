/**
 * The chart of docs/performance.md, as SVG. It has a background of its own, because GitHub shows the page in
 * light and in dark, and letters that can still be read when a phone scales it down.
 */
import { BarChart } from 'echarts/charts';
import { GridComponent, LegendComponent, TitleComponent } from 'echarts/components';
import { init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';
import { rounded, timesTypical, type Comparison } from './summary.ts';

use([BarChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer]);

const width = 480;
const height = 590;
const letters = { fontFamily: 'sans-serif', fontSize: 16, color: '#1f2328' };

const systems = [
  { key: 'service', name: 'Plant Store', color: '#1a7f37' },
  { key: 'typical', name: 'Express 5 and better-sqlite3', color: '#6e7781' },
  { key: 'baseline', name: 'Bare node:http, writes with a synced log', color: '#b6c2cf' },
] as const;

/** The message of the chart, which is its title as well. */
export function chartTitle(comparisons: readonly Comparison[]): string {
  return `Plant Store answers ${timesTypical(comparisons)} times as many requests as Express 5`;
}

/** The same bytes for the same figures. */
export function chartOf(plants: string, comparisons: readonly Comparison[]): string {
  const title = chartTitle(comparisons);
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height });
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    textStyle: letters,
    title: {
      text: title.replace(' times as', ' times\nas'), // too long for one line
      subtext: `Requests a second, ${plants} plants`,
      left: 12,
      top: 10,
      textStyle: { ...letters, fontSize: 20, lineHeight: 26 },
      subtextStyle: letters,
    },
    legend: {
      data: systems.map(({ name }) => name),
      orient: 'vertical',
      left: 12,
      top: 98,
      selectedMode: false,
      textStyle: letters,
    },
    grid: { left: 120, right: 76, top: 186, bottom: 10 },
    xAxis: { type: 'value', show: false },
    yAxis: {
      silent: true,
      type: 'category',
      inverse: true,
      data: comparisons.map(({ title: request }) => wrapped(request)),
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: { ...letters, lineHeight: 20 },
    },
    series: systems.map(({ key, name, color }) => ({
      type: 'bar',
      name,
      silent: true,
      itemStyle: { color },
      barCategoryGap: '22%',
      barGap: '8%',
      data: comparisons.map((each) => each[key].requestsPerSecond),
      label: {
        ...letters,
        show: true,
        position: 'right',
        formatter: ({ value }: { value: unknown }) => rounded(Number(value)),
      },
    })),
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  // Styles for a pointer have names that count on over all charts of a process, and a picture needs none.
  return svg
    .replaceAll(/ class="[^"]*"/g, '')
    .replace(/<style[^]*<\/style>\n?/, '')
    .replace('>', ` role="img" aria-label="${title}"><title>${title}</title>`);
}

/** On two lines, broken at a comma or after two words. */
function wrapped(text: string): string {
  return text.replace(/^([^,]+), |^(\S+ \S+) /, (_, ...[comma, words]) => `${comma ?? words}\n`);
}
