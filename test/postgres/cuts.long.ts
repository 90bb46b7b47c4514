await import('./cuts.test.ts');
