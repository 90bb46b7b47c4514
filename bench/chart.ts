/**
 * The chart of docs/explanation/performance.md, as SVG. It has its own background, because GitHub has a light and a dark
 * mode, and text that is legible when a phone scales it down.
 */
import { BarChart } from 'echarts/charts';
import { GridComponent, LegendComponent, TitleComponent } from 'echarts/components';
import { init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';
import { formatMeasured } from './figures.ts';
import { timesTypical, type Comparison } from './summary.ts';

use([BarChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer]);

const width = 480;
const height = 590;
const fontStyle = { fontFamily: 'sans-serif', fontSize: 16, color: '#1f2328' };

const systems = [
  { key: 'service', name: 'Plant Store', color: '#1a7f37' },
  { key: 'typical', name: 'Express 5 and better-sqlite3', color: '#6e7781' },
  { key: 'baseline', name: 'Bare node:http, writes with a synced log', color: '#b6c2cf' },
] as const;

/** The title of the chart, which is also its message. */
export function chartTitle(comparisons: readonly Comparison[]): string {
  return `Plant Store serves ${timesTypical(comparisons)} times as many requests as Express 5`;
}

/** Returns the same bytes for the same figures. */
export function renderChart(plants: string, comparisons: readonly Comparison[]): string {
  const title = chartTitle(comparisons);
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height });
  chart.setOption({
    animation: false,
    backgroundColor: '#ffffff',
    textStyle: fontStyle,
    title: {
      text: title.replace(' times as', ' times\nas'), // too long for one line
      subtext: `Requests a second, ${plants} plants`,
      left: 12,
      top: 10,
      textStyle: { ...fontStyle, fontSize: 20, lineHeight: 26 },
      subtextStyle: fontStyle,
    },
    legend: {
      data: systems.map(({ name }) => name),
      orient: 'vertical',
      left: 12,
      top: 98,
      selectedMode: false,
      textStyle: fontStyle,
    },
    grid: { left: 120, right: 76, top: 186, bottom: 10 },
    xAxis: { type: 'value', show: false },
    yAxis: {
      silent: true,
      type: 'category',
      inverse: true,
      data: comparisons.map(({ title: request }) => wrapLabel(request)),
      axisLine: { show: false },
      axisTick: { show: false },
      axisLabel: { ...fontStyle, lineHeight: 20 },
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
        ...fontStyle,
        show: true,
        position: 'right',
        formatter: ({ value }: { value: unknown }) => formatMeasured(Number(value)),
      },
    })),
  });
  const svg = chart.renderToSVGString();
  chart.dispose();
  // ECharts numbers the classes of its hover styles across all charts of a process. A static image needs none.
  return svg
    .replaceAll(/ class="[^"]*"/g, '')
    .replace(/<style[^]*<\/style>\n?/, '')
    .replace('>', ` role="img" aria-label="${title}"><title>${title}</title>`);
}

/** Breaks a label into two lines, at a comma or after two words. */
function wrapLabel(text: string): string {
  return text.replace(/^([^,]+), |^(\S+ \S+) /, (_, ...[comma, words]) => `${comma ?? words}\n`);
}
