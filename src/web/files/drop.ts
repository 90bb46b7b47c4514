/**
 * Makes the whole page a place to drop a file.
 */
import { show } from '../shared/dom.ts';

interface DropTarget {
  canDrop: () => boolean;
  onDrop: (file: File) => void;
}

export function acceptDrops({ canDrop, onDrop }: DropTarget): void {
  const hasFile = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes('Files') === true;
  addEventListener('dragover', (event) => {
    if (!hasFile(event)) return;
    event.preventDefault(); // otherwise the browser leaves the page for the file
    if (event.dataTransfer) event.dataTransfer.dropEffect = canDrop() ? 'copy' : 'none';
    show('drop-hint', canDrop());
  });
  addEventListener('dragleave', ({ relatedTarget }) => {
    if (relatedTarget === null) show('drop-hint', false);
  });
  addEventListener('drop', (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    show('drop-hint', false);
    const file = event.dataTransfer?.files[0];
    if (file !== undefined && canDrop()) onDrop(file);
  });
}
