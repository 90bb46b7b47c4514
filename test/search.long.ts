await import('./search.test.ts');
