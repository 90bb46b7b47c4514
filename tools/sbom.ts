/**
 * Prints a CycloneDX SBOM of the packages that the service runs on, from package-lock.json.
 *
 * `npm sbom --omit dev` also omits packages that both the service and development need. So this lists all
 * packages, and removes those that are only for development.
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

all.metadata.component.name = packageFile.name; // npm uses the name of the folder
const components = all.components.filter(
  ({ properties = [] }) => !properties.some(({ name }) => name === 'cdx:npm:package:development'),
);
const refs = new Set([all.metadata.component, ...components].map((each) => each['bom-ref']));
const dependencies = all.dependencies
  .filter(({ ref }) => refs.has(ref))
  .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((each) => refs.has(each)) }));
console.log(JSON.stringify({ ...all, components, dependencies }, null, 2));
