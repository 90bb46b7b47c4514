await import('./faults.test.ts');
