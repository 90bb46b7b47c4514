/**
 * Prints the packages that run in the service, from package-lock.json, in the format CycloneDX.
 * `npm sbom --omit dev` would leave out what development dependencies need too, so all packages are
 * listed, and those for development alone are taken out here.
 */
import { execFileSync } from 'node:child_process';
import packageFile from '../package.json' with { type: 'json' };

interface Component {
  'bom-ref': string;
  name: string;
  properties?: { name: string; value: string }[];
}

interface Document {
  metadata: { component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

const list = ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'];
const all: Document = JSON.parse(
  execFileSync('npm', list, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }),
);

all.metadata.component.name = packageFile.name; // npm takes the name of the folder
const components = all.components.filter(
  ({ properties = [] }) => !properties.some(({ name }) => name === 'cdx:npm:package:development'),
);
const refs = new Set([all.metadata.component, ...components].map((one) => one['bom-ref']));
const dependencies = all.dependencies
  .filter(({ ref }) => refs.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((one) => refs.has(one)) }));
console.log(JSON.stringify({ ...all, components, dependencies }, null, 2));
