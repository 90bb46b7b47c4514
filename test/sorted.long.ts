await import('./sorted.test.ts');
