/** The default theme with the fonts of the system. */
import theme from 'vitepress/theme-without-fonts';
import './style.css'; // oxlint-disable-line import/no-unassigned-import

export default theme;
